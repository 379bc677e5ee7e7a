#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

// The CPU's threads. Work is always cut into the same contiguous ranges for a given thread count, so results repeat bit
// for bit.
namespace tprimat {

// Threads for all that follows; 0 means all this process may run on. Call once, before the first op.
void set_thread_count(int64_t threads);
int thread_count();

// body(begin, end, thread) once per thread, over contiguous ranges of [0, count).
template <class Body>
void parallel_ranges(int64_t count, Body&& body) {
  const int threads = static_cast<int>(std::min<int64_t>(thread_count(), std::max<int64_t>(count, 1)));
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread)
    body(count * thread / threads, count * (thread + 1) / threads, thread);
}

// body(index, thread) for each index of [0, count), dealt out as threads become free: for uneven work whose results do
// not depend on which thread does it.
template <class Body>
void parallel_for_uneven(int64_t count, Body&& body) {
#pragma omp parallel for num_threads(thread_count()) schedule(dynamic, 1)
  for (int64_t index = 0; index < count; ++index) body(index, omp_get_thread_num());
}

}  // namespace tprimat
