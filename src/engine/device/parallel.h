#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "device/thread_pool.h"

// The CPU's threads. Work is always cut into the same contiguous ranges for a given thread count, whoever computes
// them, so results repeat bit for bit on a quiet machine and on a busy one.
namespace tprimat::engine {

// Threads for all that follows, fixed from here on; 0 means all this process may run on by its affinity and its control
// group's quota. Call once, before the first op.
void set_thread_count(int64_t threads);
int thread_count();

// body(index) for each index of [0, count), handed out as threads become free. Results must not depend on the thread.
template <class Body>
void parallel_each(int64_t count, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  ThreadPool::shared().run(
      count, [](void* context, int64_t index) { (*static_cast<Plain*>(context))(index); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Pieces that a thread gets of a loop without sums, so that others can take over some while it is descheduled.
inline constexpr int64_t k_pieces_per_thread = 4;

// body(begin, end, range) over contiguous ranges of [0, count), one per thread, for sums with one part per range. A
// body without `range` does not depend on their number and gets more and smaller ranges.
template <class Body>
void parallel_ranges(int64_t count, Body&& body) {
  constexpr bool is_a_sum = std::is_invocable_v<Body, int64_t, int64_t, int>;
  const int64_t wanted = thread_count() * (is_a_sum || thread_count() == 1 ? 1 : k_pieces_per_thread);
  const int64_t ranges = std::min(wanted, std::max<int64_t>(count, 1));
  parallel_each(ranges, [&](int64_t range) {
    const int64_t begin = count * range / ranges, end = count * (range + 1) / ranges;
    if constexpr (is_a_sum)
      body(begin, end, static_cast<int>(range));
    else
      body(begin, end);
  });
}

// body(row) for each of them; rows do not depend on each other.
template <class Body>
void parallel_rows(int64_t rows, const Body& body) {
  parallel_ranges(rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// body(range, begin, end) for parts of several ranges, structs with a `count`, put one after the other.
template <class Range, class Body>
void parallel_parts(std::span<const Range> ranges, const Body& body) {
  constexpr int64_t k_grain = 64;  // elements; threads begin at multiples of it
  int64_t total = 0;
  for (const Range& range : ranges) total += range.count;
  parallel_ranges((total + k_grain - 1) / k_grain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // where the range begins among all
    for (const Range& range : ranges) {
      const int64_t from = std::max<int64_t>(begin * k_grain - first, 0);
      const int64_t to = std::min(end * k_grain - first, range.count);
      if (from < to) body(range, from, to);
      first += range.count;
    }
  });
}

}  // namespace tprimat::engine
