#include "run/step_telemetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/sensor.h"

namespace tprimat::suite {
namespace {

// A reading every fifth of a second from 0 to 10 s.
SensorTrace busy_trace(const std::string& source, double utilisation) {
  SensorTrace trace{source, {}};
  for (int i = 0; i <= 50; ++i) {
    trace.readings.emplace_back();
    trace.readings.back().unix_time = 0.2 * i;
    trace.readings.back().utilisation = utilisation;
  }
  return trace;
}

StepWindows seconds_of(int count) {
  StepWindows windows;
  for (int i = 0; i < count; ++i) windows.emplace_back(TimeWindow{static_cast<double>(i), i + 1.0});
  return windows;
}

TEST(StepTelemetry, EachStepHasItsOwnReadings) {
  SensorTrace hot = busy_trace("nvml:0", 1.0), cool = busy_trace("nvml:1", 0.5);
  for (SensorTrace* trace : {&hot, &cool})
    for (Reading& reading : trace->readings) {
      const bool held = trace == &hot && reading.unix_time > 3.0 && reading.unix_time < 4.0;
      reading.power_watts = 300.0;
      reading.clock_hz = held ? 1e9 : 2e9;
      reading.temperature_celsius = held ? 90.0 : 70.0;
      reading.throttle = held ? uint32_t{k_throttle_thermal} : 0;
    }
  const auto steps = measure_steps({hot, cool}, seconds_of(12), Platform::nvd, std::nullopt);
  ASSERT_TRUE(steps.has_value());
  EXPECT_DOUBLE_EQ(steps->power_watts->at(3), 600.0);
  EXPECT_DOUBLE_EQ(steps->utilisation->at(3), 0.75);
  EXPECT_DOUBLE_EQ(steps->lowest_clock_hz->at(2), 2e9);
  EXPECT_LT(steps->lowest_clock_hz->at(3), 1.4e9);
  EXPECT_DOUBLE_EQ(steps->highest_temperature_celsius->at(3), 90.0);
  EXPECT_GT(steps->throttle_shares->at("thermal")[3], 0.5);
  EXPECT_DOUBLE_EQ(steps->throttle_shares->at("thermal")[2], 0.0);
  EXPECT_TRUE(std::isnan(steps->throttle_shares->at("thermal")[11]));  // after the last reading
  EXPECT_FALSE(steps->throttle_shares->contains("power"));
  EXPECT_FALSE(steps->others_busy_threads.has_value());
}

TEST(StepTelemetry, OthersCountWhileTheMachineIsFull) {
  SensorTrace machine = busy_trace("proc:machine", 0.5);
  for (Reading& reading : machine.readings)
    if (reading.unix_time > 3.1 && reading.unix_time < 4.1) reading.utilisation = 1.0;
  const auto steps =
      measure_steps({busy_trace("proc", 1.0), machine}, seconds_of(10), Platform::cpu, ThreadCounts{8, 4});
  ASSERT_TRUE(steps.has_value());
  EXPECT_DOUBLE_EQ(steps->others_busy_threads->at(2), 0.0);
  EXPECT_DOUBLE_EQ(steps->others_busy_threads->at(3), 4.0);
  EXPECT_DOUBLE_EQ(steps->utilisation->at(3), 1.0);
}

TEST(StepTelemetry, AStepBetweenTwoReadingsHasNone) {
  StepWindows windows{TimeWindow{1.01, 1.05}, std::nullopt};
  EXPECT_FALSE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
}

TEST(StepTelemetry, AFigureThatHardlyAnyStepHasIsLeftOut) {
  StepWindows windows(100);
  for (size_t i = 0; i < 4; ++i) windows[i] = TimeWindow{static_cast<double>(i), static_cast<double>(i) + 1.0};
  EXPECT_FALSE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
  windows[4] = TimeWindow{4.0, 5.0};
  EXPECT_TRUE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
}

TEST(StepTelemetry, WindowsHoldWhatTheStampsMakeCertain) {
  RunResult log;
  log.step_times = {3.0, 3.0, 0.5, 3.0};
  log.reported.emplace().unix_time = std::vector<double>{100.0, 103.0, 104.0, std::nan("")};
  StepWindows windows = step_windows(log);
  EXPECT_DOUBLE_EQ(windows[1]->begin, 101.0);  // the stamp is a whole second: it may have ended at 103.9
  EXPECT_DOUBLE_EQ(windows[1]->end, 103.0);
  EXPECT_FALSE(windows[2].has_value());  // shorter than its stamp is off
  EXPECT_FALSE(windows[3].has_value());
  log.reported->unix_time = std::vector<double>{100.25, 103.25, 103.25, 109.25};  // two were printed together
  windows = step_windows(log);
  EXPECT_TRUE(windows[0].has_value());
  EXPECT_FALSE(windows[1].has_value());
  EXPECT_FALSE(windows[2].has_value());
  EXPECT_TRUE(windows[3].has_value());
}

}  // namespace
}  // namespace tprimat::suite
