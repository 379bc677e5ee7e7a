#include "stats/change_points.h"

#include <gtest/gtest.h>

#include <random>

namespace tprimat {
namespace {

// Levels of 30 values each with normal noise of `sigma`.
std::vector<double> series_of(const std::vector<double>& levels, double sigma, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::vector<double> values;
  for (const double level : levels)
    for (int i = 0; i < 30; ++i) values.push_back(level + noise(random));
  return values;
}

TEST(LevelShifts, AreFoundWhereTheyAre) {
  const auto shifts = find_level_shifts(series_of({100, 95, 103}, 0.8, 1));
  ASSERT_EQ(shifts.size(), 2u);
  EXPECT_NEAR(static_cast<double>(shifts[0].at), 30, 1);
  EXPECT_NEAR(static_cast<double>(shifts[1].at), 60, 1);
  EXPECT_NEAR(shifts[0].before, 100, 0.6);
  EXPECT_NEAR(shifts[0].after, 95, 0.6);
  EXPECT_NEAR(shifts[1].after, 103, 0.6);
}

TEST(LevelShifts, NoiseAloneHasNone) {
  int series_with_a_shift = 0;
  for (uint64_t seed = 0; seed < 200; ++seed)
    series_with_a_shift += !find_level_shifts(series_of({100, 100}, 2, seed)).empty();
  EXPECT_LE(series_with_a_shift, 10) << "of 200";
}

TEST(LevelShifts, OneOrTwoStrangeValuesAreNone) {
  std::vector<double> values = series_of({100, 100}, 0.3, 5);
  values[20] = 300;
  values[40] = 50, values[41] = 55;
  EXPECT_TRUE(find_level_shifts(values).empty());
}

TEST(LevelShifts, SmallerThanOfInterestAreNone) {
  EXPECT_TRUE(find_level_shifts(series_of({100, 100.5}, 0.05, 2)).empty());
  EXPECT_EQ(find_level_shifts(series_of({100, 100.5}, 0.05, 2), {.min_relative_change = 0.001}).size(), 1u);
}

TEST(LevelShifts, ShortAndConstantSeriesHaveNone) {
  EXPECT_TRUE(find_level_shifts({}).empty());
  EXPECT_TRUE(find_level_shifts(std::vector<double>{1, 2, 1, 9}).empty());
  EXPECT_TRUE(find_level_shifts(std::vector<double>(50, 7.0)).empty());
  EXPECT_TRUE(find_level_shifts(std::vector<double>(50, 0.0)).empty());
}

TEST(LevelShifts, ALongSeriesTakesNoTime) {
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) {
    const auto next = series_of({i % 2 == 0 ? 100.0 : 104.0}, 0.5, static_cast<uint64_t>(i));
    values.insert(values.end(), next.begin(), next.end());
  }
  EXPECT_EQ(find_level_shifts(values).size(), 299u);
}

}  // namespace
}  // namespace tprimat
