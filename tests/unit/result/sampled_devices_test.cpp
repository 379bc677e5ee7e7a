#include "result/sampled_devices.h"

#include <gtest/gtest.h>

#include "result/result_file.h"
#include "result/summary.h"
#include "unit/result/sample_result.h"

namespace tprimat {
namespace {

TelemetrySummary energy_of(const std::string& source, double joules) {
  TelemetrySummary entry;
  entry.source = source;
  entry.energy_joules = joules;
  entry.energy_valid = true;
  return entry;
}

// A run on 16 GPUs, of which the sensors of one node saw 8.
RunResult on_two_nodes() {
  RunResult result = sample_result();
  result.platform = Platform::nvd;
  result.training_config.num_gpus = result.gpu_info.device_count = 16;
  result.telemetry = {energy_of("nvml", 8000.0)};
  for (int i = 0; i < 8; ++i) result.telemetry.push_back(energy_of("nvml:" + std::to_string(i), 1000.0));
  return result;
}

TEST(SampledDevices, AreCountedByTheirEntries) {
  RunResult result = on_two_nodes();
  EXPECT_EQ(sampled_devices(result, result.telemetry[0]), 8);
  EXPECT_EQ(sampled_devices(result, result.telemetry[3]), 1);
  EXPECT_EQ(count_sampled_devices(result), 8);
  EXPECT_FALSE(sampled_devices(result, energy_of("ipmi", 1.0)));
  EXPECT_FALSE(sampled_devices(result, energy_of("amd_smi", 1.0))) << "a sum without its parts";
  EXPECT_EQ(sampled_devices(result, energy_of("rapl", 1.0)), 0) << "the processor is not the GPUs";
  result.platform = Platform::cpu;
  EXPECT_FALSE(sampled_devices(result, energy_of("rapl", 1.0)));
}

TEST(SampledDevices, OfAPartOfTheRunGiveNoEnergyPerToken) {
  RunResult result = on_two_nodes();
  summarise_run(result, {});
  EXPECT_FALSE(result.derived.joules_per_token);
  result.training_config.num_gpus = result.gpu_info.device_count = 8;
  summarise_run(result, {});
  EXPECT_TRUE(result.derived.joules_per_token);
  result.telemetry[0].energy_valid = false;
  summarise_run(result, {});
  EXPECT_FALSE(result.derived.joules_per_token) << "one device's energy is not that of eight";
}

TEST(SampledDevices, WhatAProcessorDrewIsNotTheEnergyOfGpus) {
  RunResult result = on_two_nodes();
  result.telemetry = {energy_of("rapl", 500.0)};
  summarise_run(result, {});
  EXPECT_FALSE(result.derived.joules_per_token);
}

TEST(SampledDevices, APartIsRefusedWithAWarningThatCounts) {
  RunResult result = on_two_nodes();
  refuse_partial_energy(result, 8);
  for (const TelemetrySummary& each : result.telemetry) EXPECT_EQ(each.energy_valid, false) << each.source;
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("8 of the 16 devices were sampled, so there is no energy per token"),
            std::string::npos);
  EXPECT_NE(result.warnings[0].find("tprimat extract with --telemetry"), std::string::npos);
  RunResult complete = on_two_nodes();
  refuse_partial_energy(complete, 16);
  EXPECT_TRUE(complete.warnings.empty());
  EXPECT_EQ(complete.telemetry[0].energy_valid, true);
}

// A file of an earlier version, or of another tool.
TEST(SampledDevices, AFigureThatAFileStatesOfAPartIsNotTaken) {
  RunResult result = on_two_nodes();
  summarise_run(result, {});
  result.derived.joules_per_token = Estimate{0.25, {}, {}};
  const RunResult read = run_result_from_json(run_result_to_json(result), "r.json");
  EXPECT_FALSE(read.derived.joules_per_token);
  ASSERT_EQ(read.contradictions.size(), 1u);
  EXPECT_EQ(read.contradictions[0].what, "joules per token");
}

}  // namespace
}  // namespace tprimat
