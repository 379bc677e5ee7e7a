#include "stats/change_points.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tprimat {
namespace {

std::vector<double> noisy(size_t count, double level, double deviation, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(level, deviation);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(normal(random));
  return values;
}

TEST(SteadyState, FirstStepNeverCounts) {
  auto values = noisy(100, 2.0, 0.01);
  EXPECT_EQ(find_steady_state(values).excluded, 1u);
  values[0] = 90;
  EXPECT_EQ(find_steady_state(values).excluded, 1u);
  EXPECT_TRUE(find_steady_state(values).steady);
}

TEST(SteadyState, FindsTheEndOfASlowStart) {
  auto values = noisy(200, 1.0, 0.01);
  for (size_t i = 0; i < 15; ++i) values[i] = 1.2;
  values[0] = 30;
  const SteadyState found = find_steady_state(values);
  EXPECT_EQ(found.excluded, 15u);
  EXPECT_TRUE(found.steady);
  EXPECT_NE(found.reason.find("15"), std::string::npos);
}

TEST(SteadyState, FindsTheEndOfADecay) {
  auto values = noisy(300, 1.0, 0.005);
  double extra = 3;
  for (size_t i = 0; i < 60; ++i, extra *= 0.8) values[i] += extra;
  const SteadyState found = find_steady_state(values);
  EXPECT_GE(found.excluded, 14u);  // 3·0.8^14 is 13 % over
  EXPECT_LE(found.excluded, 40u);
  EXPECT_TRUE(found.steady);
}

TEST(SteadyState, SlowStepsInTheMiddleAreOutliersNotWarmUp) {
  auto values = noisy(200, 1.0, 0.01);
  values[0] = 20;
  values[60] = values[120] = values[198] = values[199] = 3;
  EXPECT_EQ(find_steady_state(values).excluded, 1u);
  EXPECT_TRUE(find_steady_state(values).steady);
}

TEST(SteadyState, PureNoiseLosesOnlyTheFirstStep) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const SteadyState found = find_steady_state(noisy(100, 1.0, 0.05, seed));
    wrong += found.excluded > 3 || !found.steady;
  }
  EXPECT_LE(wrong, 10);
}

TEST(SteadyState, LateShiftIsNeverSteady) {
  auto values = noisy(100, 1.0, 0.01);
  for (size_t i = 80; i < 100; ++i) values[i] = 1.3;
  const SteadyState found = find_steady_state(values);
  EXPECT_FALSE(found.steady);
  EXPECT_NE(found.reason.find("rise by "), std::string::npos);
  EXPECT_NE(found.reason.find("step 81"), std::string::npos) << found.reason;
}

TEST(SteadyState, NeverExcludesMoreThanTheBound) {
  auto values = noisy(100, 1.0, 0.001);
  for (size_t i = 0; i < 45; ++i) values[i] = 2;
  EXPECT_EQ(find_steady_state(values).excluded, 45u);
  const SteadyState bounded = find_steady_state(values, {.max_excluded = 10});
  EXPECT_LE(bounded.excluded, 10u);
  EXPECT_FALSE(bounded.steady);
}

TEST(SteadyState, OneSlowStepInAShortRunIsNoRegime) {
  const std::vector<double> times{5.155, 1.543, 1.551, 1.547, 1.544, 1.533, 1.502, 1.548, 1.505, 2.143};
  EXPECT_TRUE(find_steady_state(times).steady);
  EXPECT_EQ(find_steady_state(times).excluded, 1u);
}

TEST(SteadyState, TinySeries) {
  EXPECT_EQ(find_steady_state({}).excluded, 0u);
  EXPECT_EQ(find_steady_state(std::vector<double>{1}).excluded, 1u);
  EXPECT_EQ(find_steady_state(std::vector<double>{5, 1}).excluded, 1u);
  EXPECT_EQ(find_steady_state(std::vector<double>{33.7, 9.8, 9.7, 9.7, 9.7, 9.8, 9.7, 9.8, 9.8, 9.8}).excluded, 1u);
}

}  // namespace
}  // namespace tprimat
