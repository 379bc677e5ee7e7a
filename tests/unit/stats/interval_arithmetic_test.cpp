#include "stats/mean_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tprimat {
namespace {

TEST(IntervalArithmetic, SymmetricIntervalsAddTheirSquares) {
  const Interval interval = difference_interval({10, {7, 13}}, {4, {0, 8}});
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 11);
}

TEST(IntervalArithmetic, SkewStaysOnItsSide) {
  const Interval interval = difference_interval({10, {9, 20}}, {0, {0, 0}});
  EXPECT_DOUBLE_EQ(interval.low, 9);
  EXPECT_DOUBLE_EQ(interval.high, 20);
}

TEST(IntervalArithmetic, ARatioAgainstAnExactFigureIsScaled) {
  const auto interval = ratio_interval({10, {8, 12}}, {2, {2, 2}});
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 4, 1e-12);
  EXPECT_NEAR(interval->high, 6, 1e-12);
}

TEST(IntervalArithmetic, ThereIsNoRatioOfWhatMayBeZero) {
  EXPECT_FALSE(ratio_interval({1, {-0.1, 2}}, {1, {0.9, 1.1}}));
  EXPECT_FALSE(ratio_interval({1, {0.9, 1.1}}, {1, {0, 2}}));
}

// 4000 pairs of normal estimates: the interval holds the true ratio in 95 % of them, within four standard errors.
TEST(IntervalArithmetic, CoversTheTrueRatioAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 1);
  int held = 0;
  for (int i = 0; i < 4000; ++i) {
    const double a = 100 + 3 * noise(random), b = 50 + 1 * noise(random);
    const auto interval = ratio_interval({a, {a - 1.96 * 3, a + 1.96 * 3}}, {b, {b - 1.96, b + 1.96}});
    ASSERT_TRUE(interval);
    held += interval->low <= 2 && 2 <= interval->high;
  }
  EXPECT_NEAR(held / 4000.0, 0.95, 4 * std::sqrt(0.95 * 0.05 / 4000));
}

}  // namespace
}  // namespace tprimat
