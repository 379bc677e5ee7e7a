#include "probe/measuring.h"

#include <gtest/gtest.h>

namespace tprimat::engine {
namespace {

std::vector<Window> windows_of(const std::vector<double>& seconds) {
  std::vector<Window> windows;
  for (const double each : seconds) windows.push_back({each, 0.5 + each / 100});
  return windows;
}

TEST(SummariseWindows, TellsFastestMedianAndNoise) {
  const Measured measured = summarise_windows(windows_of({12, 10, 11, 14, 13}));
  EXPECT_EQ(measured.fastest_seconds, 10);
  EXPECT_EQ(measured.median_seconds, 12);
  EXPECT_DOUBLE_EQ(measured.relative_noise, 1.4826 * 1 / 12);
  EXPECT_EQ(measured.windows, 5);
  EXPECT_DOUBLE_EQ(measured.cpu_share, 0.6);  // of the fastest
}

TEST(SummariseWindows, SeesAMachineThatSlowsDown) {
  EXPECT_TRUE(summarise_windows(windows_of({10, 10, 10, 11, 11, 11})).slowed);
  EXPECT_FALSE(summarise_windows(windows_of({11, 11, 11, 10, 10, 10})).slowed);
  EXPECT_FALSE(summarise_windows(windows_of({10, 10, 10, 10.4, 10.4, 10.4})).slowed);
  EXPECT_FALSE(summarise_windows(windows_of({10, 20})).slowed);  // too few to tell
}

TEST(IsQuiet, OneWindowOutOfLineIsNoNoise) {
  const MeasuringRule rule{.noise = 0.01};
  EXPECT_TRUE(is_quiet(windows_of({10, 10, 10, 50}), rule));
  EXPECT_FALSE(is_quiet(windows_of({10, 11, 12, 13}), rule));
}

void spin(double seconds) {
  const auto start = SteadyClock::now();
  while (seconds_since(start) < seconds) {
  }
}

TEST(Measure, EndsByTimeWhereTheWorkIsNoisy) {
  const MeasuringRule rule{
      .warm_seconds = 0, .window_seconds = 0, .longest_seconds = 0.05, .noise = 0.01, .least_windows = 3};
  int calls = 0;
  const Measured measured = measure(rule, 1, [&] { spin(0.002 + 0.001 * (++calls % 3)); });
  EXPECT_EQ(measured.ended_by, EndedBy::time);
  EXPECT_EQ(measured.windows + 1, calls);  // one to warm up
  EXPECT_GE(measured.windows, 3);
  EXPECT_GE(measured.fastest_seconds, 0.002);
}

TEST(Measure, EndsByNoiseWhereTheWindowsAgree) {
  const MeasuringRule rule{
      .warm_seconds = 0, .window_seconds = 0.002, .longest_seconds = 60, .noise = 0.5, .least_windows = 3};
  const Measured measured = measure(rule, 1, [] { spin(0.001); });
  EXPECT_EQ(measured.ended_by, EndedBy::noise);
  EXPECT_LT(measured.windows, 1000);
  EXPECT_GT(measured.cpu_share, 0);
}

}  // namespace
}  // namespace tprimat::engine
