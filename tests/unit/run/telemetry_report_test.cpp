#include "run/telemetry_report.h"

#include <gtest/gtest.h>

#include <string>

#include "telemetry/sensor.h"

namespace tprimat::suite {
namespace {

SensorTrace trace_of(const std::string& source, double watts) {
  SensorTrace trace{source, {}};
  for (int i = 0; i <= 10; ++i) {
    trace.readings.emplace_back();
    trace.readings.back().unix_time = i;
    trace.readings.back().power_watts = watts;
    trace.readings.back().memory_used_bytes = 1e9 * watts;
  }
  return trace;
}

TEST(TelemetryReport, AddsUpTheDevicesOfAGpuRun) {
  const auto report = report_telemetry({trace_of("proc", 1.0), trace_of("nvml:0", 300.0), trace_of("nvml:1", 500.0)},
                                       {2.0, 8.0}, Platform::nvd);
  ASSERT_EQ(report.size(), 4u);
  EXPECT_EQ(report[0].source, "nvml");
  EXPECT_NEAR(report[0].energy_joules.value(), 4800.0, 1e-9);
  EXPECT_NEAR(report[0].mean_power_watts.value(), 800.0, 1e-9);
  EXPECT_TRUE(report[0].energy_valid.value());
  EXPECT_EQ(report[3].source, "proc");
  EXPECT_FALSE(report[3].peak_memory_used_gb.has_value());
}

TEST(TelemetryReport, OneDeviceWithoutEnergyLeavesTheSumWithoutIt) {
  const auto report = report_telemetry({trace_of("nvml:0", 300.0), {"nvml:1", {}}}, {2.0, 8.0}, Platform::nvd);
  EXPECT_FALSE(report[0].energy_joules.has_value());
  EXPECT_FALSE(report[0].energy_valid.value());
  EXPECT_EQ(report[0].energy_note, "nvml:1: no energy reading");
  EXPECT_FALSE(report[0].mean_power_watts.has_value());
}

TEST(TelemetryReport, TellsClocksTemperaturesAndWhatHeldTheClocksDown) {
  SensorTrace trace = trace_of("nvml:0", 300.0);
  trace.notes = {"energy counter: not supported by this device"};
  for (Reading& reading : trace.readings) {
    reading.clock_hz = 1.5e9;
    reading.temperature_celsius = 88.0;
    reading.throttle = k_throttle_thermal;
  }
  RunResult result;
  result.telemetry = report_telemetry({trace}, {2.0, 8.0}, Platform::nvd);
  ASSERT_EQ(result.telemetry.size(), 1u);
  EXPECT_EQ(result.telemetry[0].mean_clock_hz, 1.5e9);
  EXPECT_EQ(result.telemetry[0].mean_temperature_celsius, 88.0);
  EXPECT_EQ(result.telemetry[0].throttle_shares->at("thermal"), 1.0);
  EXPECT_EQ(result.telemetry[0].notes->at(0), "energy counter: not supported by this device");
  note_throttling(result);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("nvml:0 was throttled in 100 % of the steady steps (thermal)"), std::string::npos);
}

TEST(TelemetryReport, ACpuRunLeavesOutIdleGpus) {
  const auto report = report_telemetry({trace_of("proc", 1.0), trace_of("nvml:0", 300.0)}, {2.0, 8.0}, Platform::cpu);
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].source, "proc");
}

TelemetrySummary utilisation(const std::string& source, double share) {
  TelemetrySummary summary;
  summary.source = source;
  summary.mean_utilisation = share;
  return summary;
}

TEST(Disturbance, IsWhatOthersTakeFromABusyMachine) {
  const auto found = [](double machine, double own) {
    return count_others_threads({utilisation("proc", own), utilisation("proc:machine", machine)}, {8, 4}).has_value();
  };
  EXPECT_TRUE(found(1.0, 0.8));    // 4.8 of 8 threads belong to others
  EXPECT_FALSE(found(0.55, 1.0));  // others have memory of their own
  EXPECT_FALSE(found(0.5, 1.0));
  EXPECT_FALSE(count_others_threads({utilisation("proc", 1.0)}, {8, 8}).has_value());
}

TEST(Disturbance, IsStoredWithTheMachineAndSaid) {
  RunResult result;
  result.telemetry = {utilisation("proc", 0.5), utilisation("proc:machine", 1.0)};
  note_disturbance(result, {2, 2});
  EXPECT_FALSE(result.telemetry[0].others_busy_threads.has_value());
  EXPECT_DOUBLE_EQ(result.telemetry[1].others_busy_threads.value(), 1.0);
  ASSERT_EQ(result.warnings.size(), 1u);
}

TEST(MemorySources, NameWhoMeasured) {
  RunResult result;
  EXPECT_FALSE(describe_memory_sources(result).has_value());
  result.memory_values = {1.0};
  result.telemetry = {utilisation("nvml", 1.0)};
  result.telemetry[0].peak_memory_used_gb = 3.0;
  EXPECT_EQ(describe_memory_sources(result), "allocated: the trainer's own count; used: device memory from nvml");
}

}  // namespace
}  // namespace tprimat::suite
