#include "stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stats/autocorrelation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

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

// Share of 300 series whose 95 % interval holds the true mean.
double coverage(size_t count, double memory) {
  constexpr int k_trials = 300;
  int hits = 0;
  for (int trial = 0; trial < k_trials; ++trial) {
    const auto interval =
        bootstrap_mean(correlated_series(count, memory, static_cast<uint64_t>(trial)), {.replicates = 500, .seed = 1});
    hits += interval->low <= 1 && 1 <= interval->high;
  }
  return static_cast<double>(hits) / k_trials;
}

TEST(Distribution, QuantilesMatchTables) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.30265, 1e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 3), 3.18245, 0.016);
  EXPECT_NEAR(student_t_quantile(0.025, 9), -2.26216, 1e-3);
  EXPECT_NEAR(student_t_quantile(0.975, 100), 1.98397, 1e-4);
}

TEST(Autocorrelation, KnownSeries) {
  const std::vector<double> alternating{1, -1, 1, -1, 1, -1, 1, -1};
  EXPECT_NEAR(autocorrelation(alternating, 1), -7.0 / 8, 1e-12);
  EXPECT_NEAR(autocorrelation(correlated_series(20000, 0.7, 3), 1), 0.7, 0.03);
  EXPECT_EQ(autocorrelation(std::vector<double>(5, 2.0), 1), 0);
  EXPECT_EQ(autocorrelation(alternating, 99), 0);
}

TEST(Autocorrelation, BlocksGrowWithMemory) {
  const size_t white = block_length(correlated_series(1000, 0.0, 5)),
               red = block_length(correlated_series(1000, 0.9, 5));
  EXPECT_LE(white, 20u);
  EXPECT_GT(red, 25u);
  EXPECT_LE(red, 250u);
  EXPECT_EQ(block_length(std::vector<double>(4, 1.0)), 1u);
}

TEST(Bootstrap, SameSeedSameInterval) {
  const auto values = correlated_series(60, 0.3, 7);
  const auto first = bootstrap_mean(values), second = bootstrap_mean(values);
  EXPECT_EQ(first->low, second->low);
  EXPECT_EQ(first->high, second->high);
  EXPECT_LT(first->low, mean(values));
  EXPECT_GT(first->high, mean(values));
}

TEST(Bootstrap, CoversTheTruthForIndependentSteps) { EXPECT_GT(coverage(50, 0.0), 0.91); }
TEST(Bootstrap, CoversTheTruthForShortSeries) { EXPECT_GT(coverage(9, 0.0), 0.90); }
TEST(Bootstrap, CoversTheTruthForCorrelatedSteps) { EXPECT_GT(coverage(400, 0.8), 0.88); }

TEST(Bootstrap, ConstantSeriesHasNoWidth) {
  const auto interval = bootstrap_mean(std::vector<double>(10, 2.0));
  EXPECT_NEAR(interval->low, 2.0, 1e-12);
  EXPECT_NEAR(interval->high, 2.0, 1e-12);
}

TEST(Bootstrap, TooFewValuesHaveNoInterval) {
  EXPECT_FALSE(bootstrap_mean(std::vector<double>{1, 2, 3, 4}));
  EXPECT_FALSE(bootstrap_mean_of_runs({}));
  EXPECT_FALSE(bootstrap_ratio({{1, 1, 1, 1, 1}}, {{1, 2}}, 1));
}

TEST(Bootstrap, RatioIsScaledAndCentred) {
  const Runs slow{correlated_series(100, 0, 1)}, fast{correlated_series(100, 0, 2)};
  const auto interval = bootstrap_ratio(slow, fast, 3.0);
  EXPECT_LT(interval->low, 3.0 * mean(slow[0]) / mean(fast[0]));
  EXPECT_GT(interval->high, 3.0 * mean(slow[0]) / mean(fast[0]));
  EXPECT_LT(interval->high - interval->low, 0.3);
}

TEST(Bootstrap, SpreadBetweenRunsWidensTheInterval) {
  auto shifted = [](double by, uint64_t seed) {
    auto values = correlated_series(100, 0, seed);
    for (double& value : values) value += by;
    return values;
  };
  const auto alike = bootstrap_mean_of_runs({shifted(0, 1), shifted(0, 2), shifted(0, 3), shifted(0, 4)});
  const auto unlike = bootstrap_mean_of_runs({shifted(-0.2, 1), shifted(0.2, 2), shifted(-0.1, 3), shifted(0.1, 4)});
  EXPECT_GT(unlike->high - unlike->low, 5 * (alike->high - alike->low));
}

// Three runs without noise of their own: Student's interval of their means, 1.1 ± 4.30·0.1/√3.
TEST(Bootstrap, FewRunsThatDifferAreWorthLittle) {
  const auto interval = bootstrap_mean_of_runs(
      {std::vector<double>(50, 1.0), std::vector<double>(50, 1.1), std::vector<double>(50, 1.2)});
  EXPECT_NEAR(interval->low, 1.1 - 0.248, 0.012);
  EXPECT_NEAR(interval->high, 1.1 + 0.248, 0.012);
}

TEST(Bootstrap, RunsThatDifferLessThanTheirNoiseAreNotPunished) {
  const auto one = bootstrap_mean(correlated_series(100, 0, 1));
  const auto three = bootstrap_mean_of_runs(
      {correlated_series(100, 0, 1), correlated_series(100, 0, 2), correlated_series(100, 0, 3)});
  EXPECT_LT(three->high - three->low, 2 * (one->high - one->low));
}

}  // namespace
}  // namespace tprimat
