#include "run/hang_watch.h"

#include <gtest/gtest.h>

namespace tprimat::suite {
namespace {

HangLimits strict_limits() { return {20.0, 60.0, 900.0}; }

TEST(HangWatch, KnowsAHangFromASlowTraining) {
  HangWatch watch(strict_limits(), 100);
  std::vector<StepRecord> steps;
  for (int i = 1; i <= 37; ++i) {
    steps.push_back({});
    steps.back().step = i;
    steps.back().time_seconds = 5.0;
    watch.look(steps, 5.0 * i);
  }
  EXPECT_FALSE(watch.find_hang(185.0 + 99.0).has_value());
  EXPECT_EQ(watch.find_hang(185.0 + 101.0),
            "hung: no step for 1 min 41 s after step 37, where the median step takes 5.000 s");
  EXPECT_FALSE(watch.late_seconds(185.0 + 14.0).has_value());
  EXPECT_DOUBLE_EQ(watch.late_seconds(185.0 + 35.0).value(), 35.0);
}

TEST(HangWatch, AllowsForTheStartAndTheEnd) {
  HangWatch watch(strict_limits(), 3);
  EXPECT_FALSE(watch.find_hang(899.0).has_value());
  EXPECT_TRUE(watch.find_hang(901.0).value_or("").starts_with("hung: no step in the"));
  std::vector<StepRecord> steps(3);
  for (int i = 0; i < 3; ++i) steps[static_cast<size_t>(i)].step = i + 1;
  watch.look(steps, 10.0);
  EXPECT_FALSE(watch.find_hang(10.0 + 899.0).has_value()) << "it may export its weights";
  EXPECT_TRUE(watch.find_hang(10.0 + 901.0).value_or("").starts_with("hung: did not end"));
}

TEST(HangWatch, StepsThatComeInBundlesAreNoHang) {
  HangWatch watch({20.0, 1.0, 900.0}, 1000);
  std::vector<StepRecord> steps;
  for (int bundle = 1; bundle <= 5; ++bundle) {
    for (int i = 0; i < 50; ++i) {
      steps.push_back({});
      steps.back().step = static_cast<int64_t>(steps.size());
      steps.back().time_seconds = 0.2;
    }
    watch.look(steps, 10.0 * bundle);
  }
  EXPECT_FALSE(watch.find_hang(50.0 + 150.0).has_value());
  EXPECT_EQ(watch.find_hang(50.0 + 210.0),
            "hung: no step for 3 min 30 s after step 250, where the median step takes 200.0 ms");
}

TEST(HangWatch, PausesOfTheConfigurationAreAllowed) {
  TrainSpec spec;
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::cpu).floor_seconds, 60.0);
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::cpu).startup_seconds.value(), 3600.0);
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::nvd).startup_seconds.value(), 900.0);
  spec.checkpoint.directory = "somewhere";
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::nvd).floor_seconds, 600.0);
}

}  // namespace
}  // namespace tprimat::suite
