#pragma once

#include <cstdint>
#include <vector>

#include "device/parallel.h"

namespace tprimat::engine {

// Column sums that each thread makes of its own rows; they are then added in the order of the threads, so that the same
// number of threads gives the same bits. The memory is kept from one call to the next.
class ThreadSums {
 public:
  explicit ThreadSums(int64_t cols) : stride_(cols + 32), memory_(kept()) {
    memory_.assign(static_cast<size_t>(stride_ * thread_count()), 0.0f);
  }
  float* of(int thread) { return memory_.data() + thread * stride_; }
  // visit(row, the thread's sums)
  template <class Visit>
  void visit_rows(int64_t rows, const Visit& visit) {
    parallel_ranges(rows, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t row = begin; row < end; ++row) visit(row, of(thread));
    });
  }
  // sums[c] += Σ_threads of(thread)[first + c]
  void add_to(int64_t first, int64_t count, float* sums) {
    for (int thread = 0; thread < thread_count(); ++thread)
      for (int64_t c = 0; c < count; ++c) sums[c] += of(thread)[first + c];
  }

 private:
  static std::vector<float>& kept() {
    thread_local std::vector<float> memory;
    return memory;
  }

  int64_t stride_;  // a gap between the threads, so that they share no cache line
  std::vector<float>& memory_;
};

}  // namespace tprimat::engine
