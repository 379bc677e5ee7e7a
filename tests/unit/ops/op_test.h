#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <functional>
#include <vector>

#include "ops/matmul.h"
#include "ops/op_table.h"
#include "unit/op_values.h"

// What the tests of all ops share on the processor: finite differences, every instruction set.
namespace tprimat::engine {

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Compares `gradient` with central differences of `loss` in every direction of `inputs`.
inline void expect_gradient(std::vector<double>& inputs, const std::vector<double>& gradient,
                            const std::function<double()>& loss) {
  constexpr double k_step = 1e-5;
  std::vector<double> measured(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double kept = inputs[i];
    inputs[i] = kept + k_step;
    const double above = loss();
    inputs[i] = kept - k_step;
    measured[i] = (above - loss()) / (2 * k_step);
    inputs[i] = kept;
  }
  expect_close(gradient, measured, 1e-7);
}

// Runs `body` once per instruction set that this CPU has and the kernels were compiled for
// (src/engine/ops/CMakeLists.txt); on the others the least of those would run again.
template <class Body>
void for_each_target(const Body& body) {
  constexpr int64_t k_not_compiled =
      HWY_AVX3_DL | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_EMU128 | HWY_SCALAR;
  for (int64_t targets = hwy::SupportedTargets() & ~k_not_compiled; targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

// The processor's operations on the instruction sets that are allowed now.
template <class T>
OpTable<T> ops() {
  return find_cpu_ops<T>();
}

template <class T>
class FastOp : public ::testing::Test {};
using FastTypes = ::testing::Types<float, bf16, f16>;

// Where the elements of a matrix lie in blocks.
struct BlockOrder {
  int64_t rows, cols;
  int64_t place(int64_t r, int64_t c) const {
    return (r - r % k_block_side) * cols + (c - c % k_block_side + r % k_block_side) * k_block_side + c % k_block_side;
  }
  template <class N>
  std::vector<N> rows_of(const std::vector<N>& blocks) const {
    std::vector<N> result(blocks.size());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        result[static_cast<size_t>(r * cols + c)] = blocks[static_cast<size_t>(place(r, c))];
    return result;
  }
  template <class N>
  std::vector<N> blocks_of(const std::vector<N>& matrix) const {
    std::vector<N> result(matrix.size());
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        result[static_cast<size_t>(place(r, c))] = matrix[static_cast<size_t>(r * cols + c)];
    return result;
  }
};

}  // namespace tprimat::engine
