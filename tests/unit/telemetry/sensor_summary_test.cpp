#include "telemetry/sensor_summary.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

// A reading each second from 0 to `last`, 100 W drawn.
SensorTrace steady_trace(int last) {
  SensorTrace trace{"test", {}};
  for (int i = 0; i <= last; ++i) {
    Reading reading;
    reading.unix_time = i;
    reading.power_watts = 100.0;
    reading.energy_joules = 5000.0 + 100.0 * i;
    reading.utilisation = 0.5;
    reading.memory_used_bytes = i == 0 ? 9e9 : 4e9;
    trace.readings.push_back(reading);
  }
  return trace;
}

TEST(SensorSummary, InterpolatesTheCounterToTheEdges) {
  const SensorSummary summary = summarise_readings(steady_trace(20), {2.25, 10.75});
  EXPECT_NEAR(summary.energy_joules.value(), 850.0, 1e-9);
  EXPECT_TRUE(summary.energy_valid.value());
  EXPECT_EQ(summary.energy_note, "hardware energy counter, confirmed by integrated power");
  EXPECT_EQ(summary.samples, 8u);
  EXPECT_DOUBLE_EQ(summary.interval_seconds.value(), 1.0);
  EXPECT_DOUBLE_EQ(summary.mean_power_watts.value(), 100.0);
  EXPECT_DOUBLE_EQ(summary.mean_utilisation.value(), 0.5);
  EXPECT_DOUBLE_EQ(summary.peak_memory_bytes.value(), 9e9);  // before the window
}

TEST(SensorSummary, IntegratesPowerWithoutACounter) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) {
    reading.energy_joules.reset();
    reading.power_watts = 10.0 * reading.unix_time;
  }
  const SensorSummary summary = summarise_readings(trace, {2.5, 10.5});
  EXPECT_NEAR(summary.energy_joules.value(), 5.0 * (10.5 * 10.5 - 2.5 * 2.5), 1e-9);
  EXPECT_EQ(summary.energy_note, "integrated power");
}

TEST(SensorSummary, RejectsMethodsThatDisagree) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) reading.power_watts = 200.0;
  const SensorSummary summary = summarise_readings(trace, {2.0, 10.0});
  EXPECT_FALSE(summary.energy_valid.value());
  EXPECT_EQ(summary.energy_note, "the energy counter says 800.0 J but integrated power 1600.0 J");
}

TEST(SensorSummary, RejectsGapsAndUncoveredWindows) {
  SensorTrace gap = steady_trace(30);
  gap.readings.erase(gap.readings.begin() + 8, gap.readings.begin() + 17);
  EXPECT_EQ(summarise_readings(gap, {2.0, 25.0}).energy_note, "a gap of 10.0 s between readings");
  const SensorSummary late = summarise_readings(steady_trace(10), {2.0, 20.0});
  EXPECT_FALSE(late.energy_valid.value());
  EXPECT_EQ(late.energy_note, "readings cover all but 10.0 s of 18.0 s");
}

TEST(SensorSummary, RejectsACounterThatStandsStillOrResets) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) reading.energy_joules = 7.0;
  EXPECT_EQ(summarise_readings(trace, {2.0, 10.0}).energy_note, "the energy counter did not advance");
  EXPECT_FALSE(summarise_readings(trace, {2.0, 10.0}).energy_valid.value());
}

TEST(SensorSummary, SaysNothingOfWhatWasNotRead) {
  const SensorSummary nothing = summarise_readings({"proc", {}}, {0.0, 10.0});
  EXPECT_EQ(nothing.samples, 0u);
  EXPECT_FALSE(nothing.energy_joules.has_value());
  EXPECT_FALSE(nothing.energy_valid.has_value());
  EXPECT_FALSE(nothing.mean_power_watts.has_value());
}

TEST(SensorSummary, DerivesPowerFromTheCounter) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) reading.power_watts.reset();
  const SensorSummary summary = summarise_readings(trace, {2.0, 10.0});
  EXPECT_NEAR(summary.mean_power_watts.value(), 100.0, 1e-9);
  EXPECT_EQ(summary.energy_note, "hardware energy counter");
}

}  // namespace
}  // namespace tprimat
