#include "stats/mean_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "stats/descriptive.h"

namespace tprimat {
namespace {

// x[i] = 1 + noise, noise a first-order process with correlation `memory` and marginal deviation 0.05.
std::vector<double> correlated_series(size_t count, double memory, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  double state = normal(random);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(1 + 0.05 * state);
    state = memory * state + std::sqrt(1 - memory * memory) * normal(random);
  }
  return values;
}

TEST(Autocorrelation, KnownSeries) {
  const std::vector<double> alternating{1, -1, 1, -1, 1, -1, 1, -1};
  EXPECT_NEAR(autocorrelation(alternating, 1), -7.0 / 8, 1e-12);
  EXPECT_NEAR(autocorrelation(correlated_series(20000, 0.7, 3), 1), 0.7, 0.03);
  EXPECT_EQ(autocorrelation(std::vector<double>(5, 2.0), 1), 0);
  EXPECT_EQ(autocorrelation(alternating, 99), 0);
}

// The first cosine alone: x = cos(π(t + ½)/n), whose squares sum to n/2.
TEST(MeanEstimate, FirstCoefficientIsWhatACosineHolds) {
  std::vector<double> values;
  constexpr int k_steps = 20;
  for (int t = 0; t < k_steps; ++t) values.push_back(1 + 0.01 * std::cos(std::acos(-1.0) * (t + 0.5) / k_steps));
  const auto estimate = estimate_mean(values);
  EXPECT_NEAR(estimate->value, 1, 1e-12);
  EXPECT_NEAR(estimate->degrees_of_freedom, 1.25 * 1.25 / (1 + 0.25 * 0.25), 1e-12) << "and a quarter of the next";
  // c_1² = 0.01²·n/2, the second cosine holds nothing; prewhitening only enlarges.
  EXPECT_GT(estimate->variance, 1e-4 / 2 / 1.25);
}

TEST(MeanEstimate, VarianceOfTheMeanIsThatOfTheProcess) {
  double white = 0, red = 0;
  constexpr int k_trials = 200, k_steps = 400;
  for (int trial = 0; trial < k_trials; ++trial) {
    white += estimate_mean(correlated_series(k_steps, 0, static_cast<uint64_t>(trial)))->variance / k_trials;
    red += estimate_mean(correlated_series(k_steps, 0.7, static_cast<uint64_t>(trial)))->variance / k_trials;
  }
  const double independent = 0.05 * 0.05 / k_steps;
  EXPECT_NEAR(white / independent, 1, 0.15);
  EXPECT_NEAR(red / independent / (1.7 / 0.3), 1, 0.2);  // (1 + rho) / (1 - rho)
}

// Of cosines whose weights sum to `total`, all 1 but the last.
double degrees_of(double total) {
  const double whole = std::floor(total), part = total - whole;
  return total * total / (whole + part * part);
}

TEST(MeanEstimate, MemoryCostsDegreesOfFreedom) {
  const auto white = estimate_mean(correlated_series(200, 0, 1)), red = estimate_mean(correlated_series(200, 0.9, 1));
  EXPECT_NEAR(white->degrees_of_freedom, degrees_of(0.41 * std::pow(200, 2.0 / 3)), 1e-9);
  EXPECT_LT(red->degrees_of_freedom, 5);
}

TEST(MeanEstimate, ConstantSeriesHasNoWidth) {
  const auto estimate = estimate_mean(std::vector<double>(10, 2.0));
  EXPECT_EQ(student_interval(*estimate).low, 2.0);
  EXPECT_EQ(positive_interval(*estimate).high, 2.0);
}

TEST(MeanEstimate, TooFewValuesHaveNone) {
  EXPECT_FALSE(estimate_mean(std::vector<double>{1, 2, 3, 4}));
  EXPECT_FALSE(estimate_mean({}));
}

TEST(MeanEstimate, IntervalsAreStudents) {
  const Interval plain = student_interval({1.1, 0.01 / 3, 2});
  EXPECT_NEAR(plain.high - 1.1, 4.30265273 * 0.1 / std::sqrt(3), 1e-7);
  EXPECT_NEAR(1.1 - plain.low, plain.high - 1.1, 1e-12);
  const Interval positive = positive_interval({1.1, 0.01 / 3, 2});
  EXPECT_NEAR(positive.low * positive.high, 1.1 * 1.1, 1e-12);
  EXPECT_GT(positive_interval({1, 4, 1}).low, 0) << "a time is never negative, however uncertain";
}

}  // namespace
}  // namespace tprimat
