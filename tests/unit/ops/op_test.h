#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "ops/element.h"

// What the tests of all ops share: random inputs, the norm-wise comparison, finite differences, every instruction set.
namespace tprimat {

inline std::vector<double> random_values(int64_t count, uint64_t seed, double scale = 1.0) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0.0, scale);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = normal(generator);
  return values;
}

// Values of T that are also exact in double, so that both sides start from the same numbers.
template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = narrow<T>(static_cast<Accum<T>>(values[i]));
  return result;
}
template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = static_cast<double>(widen(values[i]));
  return result;
}
template <class T>
std::vector<double> rounded(const std::vector<double>& values) {
  return widened(narrowed<T>(values));
}

// ‖actual − expected‖ ≤ tolerance · ‖expected‖
inline void expect_close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << "at " << i;
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size) + 1e-30);
}

// Relative error that one rounding to T and a sum of a few hundred terms may leave.
template <class T>
constexpr double tolerance_of() {
  if constexpr (std::is_same_v<T, bf16>) return 8e-3;
  if constexpr (std::is_same_v<T, f16>) return 1e-3;
  return 3e-6;
}

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

// Runs `body` once per instruction set that this CPU has and the kernels were compiled for (src/ops/CMakeLists.txt); on
// the others the least of those would run again.
template <class Body>
void for_each_target(const Body& body) {
  constexpr int64_t k_not_compiled = HWY_AVX3_DL | HWY_SSE4 | HWY_EMU128 | HWY_SCALAR;
  for (int64_t targets = hwy::SupportedTargets() & ~k_not_compiled; targets != 0; targets &= targets - 1) {
    const int64_t target = targets & -targets;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

template <class T>
class FastOp : public ::testing::Test {};
using FastTypes = ::testing::Types<float, bf16, f16>;

}  // namespace tprimat
