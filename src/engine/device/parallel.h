#pragma once

#include <algorithm>
#include <cstdint>
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

}  // namespace tprimat::engine
