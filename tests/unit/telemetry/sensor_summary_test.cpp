#include "telemetry/sensor_summary.h"

#include <gtest/gtest.h>

#include "telemetry/sensor.h"

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
  EXPECT_EQ(summary.energy_note, "the energy counter reads 800.0 J, but integrated power is 1600.0 J");
}

TEST(SensorSummary, RejectsGapsAndUncoveredWindows) {
  SensorTrace gap = steady_trace(30);
  gap.readings.erase(gap.readings.begin() + 8, gap.readings.begin() + 17);
  EXPECT_EQ(summarise_readings(gap, {2.0, 25.0}).energy_note, "a gap of 10.0 s between readings");
  const SensorSummary late = summarise_readings(steady_trace(10), {2.0, 20.0});
  EXPECT_FALSE(late.energy_valid.value());
  EXPECT_EQ(late.energy_note, "readings cover all but 10.0 s of 18.0 s");
}

TEST(SensorSummary, ReplacesACounterThatStandsStill) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) reading.energy_joules = 7.0;
  const SensorSummary frozen = summarise_readings(trace, {2.0, 10.0});
  EXPECT_EQ(frozen.energy_note, "integrated power: the energy counter did not advance");
  EXPECT_NEAR(frozen.energy_joules.value(), 800.0, 1e-9);
  EXPECT_TRUE(frozen.energy_valid.value());
  for (size_t i = 0; i < 10; ++i) trace.readings[i].energy_joules = 7.0 - 100.0 * (9.0 - static_cast<double>(i));
  EXPECT_EQ(summarise_readings(trace, {2.0, 20.0}).energy_note,
            "integrated power: the energy counter stood still for 11.0 s");
}

TEST(SensorSummary, ReplacesACounterThatResets) {
  SensorTrace trace = steady_trace(20);
  for (size_t i = 5; i < trace.readings.size(); ++i) *trace.readings[i].energy_joules -= 5400.0;
  const SensorSummary reset = summarise_readings(trace, {2.0, 10.0});
  EXPECT_EQ(reset.energy_note, "integrated power: the energy counter went back by 5300.0 J");
  EXPECT_NEAR(reset.energy_joules.value(), 800.0, 1e-9);
}

TEST(SensorSummary, GivesNoEnergyWhereNothingCanBeTrusted) {
  SensorTrace trace = steady_trace(20);
  for (Reading& reading : trace.readings) {
    reading.power_watts.reset();
    *reading.energy_joules *= 1e6;
  }
  const SensorSummary summary = summarise_readings(trace, {2.0, 10.0});
  EXPECT_EQ(summary.energy_note, "the energy counter implies 100000 kW");
  EXPECT_FALSE(summary.energy_valid.value());
  EXPECT_FALSE(summary.energy_joules.has_value());
  EXPECT_FALSE(summary.mean_power_watts.has_value());
}

TEST(SensorSummary, GivesNoMeanOfADeviceThatFellSilent) {
  SensorTrace trace = steady_trace(20);
  for (size_t i = 12; i < trace.readings.size(); ++i) trace.readings[i].power_watts.reset();
  trace.notes = {"power: the GPU is lost (9 of 21 readings)"};
  const SensorSummary summary = summarise_readings(trace, {0.0, 20.0});
  EXPECT_NEAR(summary.mean_power_watts.value(), 100.0, 1e-9) << "from the counter";
  EXPECT_EQ(summary.notes,
            (std::vector<std::string>{"power: the GPU is lost (9 of 21 readings)",
                                      "mean power: only 12 of 21 readings in the steady steps have it"}));
}

TEST(SensorSummary, SharesThrottleReasons) {
  SensorTrace trace = steady_trace(9);
  EXPECT_FALSE(summarise_readings(trace, {0.0, 9.0}).throttle_shares.has_value());
  for (Reading& reading : trace.readings) reading.throttle = 0;
  for (size_t i = 0; i < 4; ++i) trace.readings[i].throttle = k_throttle_power;
  trace.readings[4].throttle = k_throttle_thermal;
  const auto shares = summarise_readings(trace, {0.0, 9.0}).throttle_shares.value();
  EXPECT_EQ(shares, (std::map<std::string, double>{{"power", 0.4}, {"thermal", 0.1}}));
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
