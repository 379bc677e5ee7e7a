#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "device/element.h"

// Random inputs of operations, and the norm-wise comparison with the reference.
namespace tprimat::engine {

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

}  // namespace tprimat::engine
