#include "doctor/machine_before_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "doctor_fixture.h"
#include "unit/run/shared_gpu.h"

namespace tprimat::suite {
namespace {

class TwoGpus : public SharedGpu {
 public:
  std::vector<GpuFacts> devices() const override {
    return {{Platform::nvd, 0, "H100", {}, {}, {}}, {Platform::nvd, 1, "H100", {}, {}, {}}};
  }
  std::vector<GpuHolder> holders(int64_t device) const override {
    return device == 1 ? std::vector<GpuHolder>{{4711, 1e9}} : std::vector<GpuHolder>();
  }
};

std::set<std::string> codes_of(const DoctorReport& report) {
  std::set<std::string> codes;
  for (const MachineFinding& finding : report.findings) codes.insert(finding.code.value_or("none"));
  return codes;
}

TEST(MachineBeforeRun, ASoundOneHasNoFindings) {
  const DoctorReport report = examine_machine(sound_cpu_machine());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_GT(report.passed, 8);
}

TEST(MachineBeforeRun, EveryWarningHasACode) {
  DoctorFacts facts = sound_gpu_machine();
  facts.host.busy_share = facts.host.stolen_share = 0.5;
  facts.host.available_memory_bytes = 1e9;
  facts.host.swap_used_bytes = 5e9;
  facts.host.shared_memory_free_bytes = 1e6;
  facts.host.locked_memory = ResourceLimit{1e6};
  facts.host.clock_source = "hpet";
  facts.host.pci_gpus = {{"0000:17:00.0", false}};
  facts.output.free_bytes = 1e9;
  GpuState& gpu = facts.gpus[0].state;
  gpu.mig = true;
  gpu.pcie_lanes = 4;
  gpu.now.throttle = k_throttle_thermal;
  gpu.now.temperature_celsius = 88.0;
  gpu.now.utilisation = 0.5;
  const std::set<std::string> codes = codes_of(examine_machine(facts));
  EXPECT_EQ(codes, (std::set<std::string>{"busy_processor", "stolen_time", "little_memory", "swapped_out",
                                          "little_shared_memory", "locked_memory", "slow_clock_source", "no_driver",
                                          "little_disk", "gpu_partitioned", "pcie_lanes", "gpu_throttled", "gpu_hot",
                                          "gpu_busy"}));
}

TEST(MachineBeforeRun, WhatIsInstalledIsNoFindingOfTheMachine) {
  DoctorFacts facts = sound_cpu_machine();
  facts.request.frameworks = {Framework::tran};
  EXPECT_TRUE(examine_machine(facts).findings.empty());
}

TEST(MachineBeforeRun, OfGpusOnlyThoseOfTheRunCount) {
  const std::vector<std::shared_ptr<const GpuLibrary>> libraries = {std::make_shared<TwoGpus>()};
  const GpuUse first{Platform::nvd, [](const std::string&) { return std::nullopt; }, 1};
  EXPECT_EQ(read_gpus(libraries).size(), 2u);
  ASSERT_EQ(read_gpus(libraries, first).size(), 1u);
  EXPECT_TRUE(read_gpus(libraries, first)[0].holders.empty());
  EXPECT_EQ(read_gpus(libraries)[1].holders.size(), 1u);
}

TEST(MachineBeforeRun, ARunOnTheProcessorLooksAtNoGpu) {
  const std::vector<std::shared_ptr<const GpuLibrary>> libraries = {std::make_shared<TwoGpus>()};
  const DoctorFacts facts = read_machine_before_run({Platform::cpu, {}, "."}, MachineFacts(), libraries);
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_TRUE(facts.host.pci_gpus.empty());
  EXPECT_TRUE(facts.frameworks.empty()) << "nothing is searched for";
  EXPECT_TRUE(facts.output.writable);
}

}  // namespace
}  // namespace tprimat::suite
