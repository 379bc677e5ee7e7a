#include "stats/log_ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stats/distribution.h"

namespace tprimat {
namespace {

std::vector<MeanEstimate> exact_runs(const std::vector<double>& means) {
  std::vector<MeanEstimate> runs;
  for (const double each : means) runs.push_back({each, 0, 5});
  return runs;
}

TEST(LogRatio, IsWelchsOfTheRunMeans) {
  const LogRatio ratio = compare_means(exact_runs({1.0, 1.1, 1.2}), exact_runs({2.0, 2.02, 1.98, 2.0}), 0.02);
  const double top = std::pow(0.1 / 1.1, 2) / 3, bottom = (0.0008 / 3) / 4 / 4;
  EXPECT_NEAR(ratio.value, std::log(1.1 / 2.0), 1e-12);
  EXPECT_NEAR(ratio.variance, top + bottom, 1e-12);
  EXPECT_NEAR(ratio.degrees_of_freedom, std::pow(top + bottom, 2) / (top * top / 2 + bottom * bottom / 3), 1e-9);
  EXPECT_EQ(ratio.spread, RunSpread::measured);
}

TEST(LogRatio, ATinySideLimitsTheDegrees) {
  const LogRatio ratio = compare_means(exact_runs({1.0, 1.00001}), exact_runs({1, 1.1, 0.9, 1.05, 0.95, 1, 1}), 0.02);
  EXPECT_EQ(ratio.degrees_of_freedom, 2);
}

TEST(LogRatio, OneRunASideAssumesASpread) {
  const LogRatio ratio = compare_means({{1, 1e-6, 10}}, {{1, 0, 10}}, 0.02);
  EXPECT_EQ(ratio.spread, RunSpread::assumed);
  EXPECT_NEAR(ratio.variance, 2 * 0.0004 + 1e-6, 1e-12);
}

TEST(LogRatio, OneRunBorrowsTheSpreadOfThreeButNotOfTwo) {
  const LogRatio borrowed = compare_means({{1, 1e-8, 10}}, exact_runs({0.99, 1.0, 1.01}), 0.02);
  EXPECT_EQ(borrowed.spread, RunSpread::borrowed);
  EXPECT_NEAR(borrowed.variance, 0.0001 * (1 + 1.0 / 3), 1e-12);
  EXPECT_EQ(borrowed.degrees_of_freedom, 2);
  const LogRatio noisy = compare_means({{1, 1e-3, 10}}, exact_runs({0.99, 1.0, 1.01}), 0.02);
  EXPECT_GT(noisy.variance, 1e-3) << "never less than its own noise";
  EXPECT_EQ(compare_means({{1, 0, 10}}, exact_runs({0.99, 1.01}), 0.02).spread, RunSpread::assumed);
}

TEST(LogRatio, UpsideDownIsTheMirrorImage) {
  const auto a = exact_runs({1.0, 1.1, 1.2}), b = exact_runs({2.0, 2.1});
  const Interval up = ratio_interval(compare_means(a, b, 0.02)), down = ratio_interval(compare_means(b, a, 0.02));
  EXPECT_NEAR(up.low * down.high, 1, 1e-12);
  EXPECT_NEAR(up.high * down.low, 1, 1e-12);
}

TEST(LogRatio, PValueFallsBelowFivePercentWhereTheIntervalLeavesTheMargin) {
  LogRatio ratio;
  ratio.variance = 1e-4;
  ratio.degrees_of_freedom = 4;
  const double edge = std::log(1.01) + student_t_quantile(0.975, 4) * 0.01;
  ratio.value = edge + 1e-9;
  EXPECT_LT(p_value_beyond(ratio, 0.01), 0.05);
  EXPECT_GT(ratio_interval(ratio).low, 1.01);
  ratio.value = -edge + 1e-9;
  EXPECT_GT(p_value_beyond(ratio, 0.01), 0.05);
  EXPECT_GT(ratio_interval(ratio).high, 1 / 1.01);
  ratio.value = 0;
  EXPECT_EQ(p_value_beyond(ratio, 0.01), 1);
}

// By hand: normal approximation, 2 % true, margin 1 %, spread 1 % a run: n·((0.0198 - 0.00995) / 0.01)² / 2 must reach
// (t + 0.84)², which at n = 20 is 3.11² > 2.87² and at n = 15 is 2.70² < 2.89².
TEST(LogRatio, RunsToSettleComeFromThePower) {
  LogRatio ratio = compare_means(exact_runs({1.01, 1.02, 1.03}), exact_runs({0.99, 1.0, 1.01}), 0.02);
  const auto more = more_runs_to_settle(ratio, {});
  ASSERT_TRUE(more);
  EXPECT_GT(3 + *more, 15u);
  EXPECT_LT(3 + *more, 20u);
  EXPECT_GE(*more_runs_to_settle(ratio, {.power = 0.9}), *more);
  EXPECT_GE(*more_runs_to_settle(ratio, {.significance = 0.01}), *more);
}

TEST(LogRatio, NoNumberOfRunsSettlesARatioAtTheMargin) {
  LogRatio ratio = compare_means(exact_runs({1.01, 1.02, 1.0}), exact_runs({1.0, 1.01, 0.99}), 0.02);
  ratio.value = std::log(1.0101);
  EXPECT_FALSE(more_runs_to_settle(ratio, {}));
}

// 3 tests: harmonic sum 11/6. 0.01·3·11/6 = 0.055; 0.03 and 0.04 share 0.04·11/6.
TEST(FalseDiscovery, IsBenjaminiYekutielis) {
  const std::vector<double> adjusted = adjust_p_values(std::vector<double>{0.04, 0.01, 0.03});
  EXPECT_NEAR(adjusted[1], 0.055, 1e-12);
  EXPECT_NEAR(adjusted[0], 0.04 * 11 / 6, 1e-12);
  EXPECT_NEAR(adjusted[2], 0.04 * 11 / 6, 1e-12);
  EXPECT_EQ(adjust_p_values(std::vector<double>{0.03})[0], 0.03) << "one test needs no adjustment";
  EXPECT_EQ(adjust_p_values(std::vector<double>{0.9, 0.8})[0], 1);
  EXPECT_TRUE(adjust_p_values({}).empty());
}

}  // namespace
}  // namespace tprimat
