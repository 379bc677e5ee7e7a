#include <gtest/gtest.h>

#include "doctor_fixture.h"

namespace tprimat::suite {
namespace {

// What one change to the sound GPU is judged to be.
struct GpuCase {
  void (*change)(GpuCondition&);
  const char* words;
  MachineSeverity severity;
  const char* remedy;
};

TEST(GpuChecks, FindNothingWrongWithASoundGpu) {
  const DoctorFacts facts = sound_gpu_machine();
  EXPECT_EQ(worst_of(check_gpus(facts)), MachineSeverity::ok);
  EXPECT_EQ(worst_of(check_drivers(facts)), MachineSeverity::ok);
  EXPECT_TRUE(
      find_finding(check_gpus(facts), "NVIDIA H100 80GB HBM3, 80.00 GB, limit 700 W, clock now 345 MHz of 1980 MHz"));
  EXPECT_TRUE(find_finding(check_gpus(facts), "31 C, slowdown at 89 C"));
  EXPECT_TRUE(find_finding(check_drivers(facts), "driver 550.54.15 (nvml)"));
}

std::vector<GpuCase> cases_of_health() {
  return {
      {[](GpuCondition& g) { g.state.uncorrected_errors = 3; }, "3 uncorrected memory errors", MachineSeverity::broken,
       "nvidia-smi --gpu-reset -i 0"},
      {[](GpuCondition& g) { g.state.ecc = false; }, "ECC is off", MachineSeverity::note, "-e 1"},
      {[](GpuCondition& g) { g.state.now.throttle = k_throttle_thermal | k_throttle_hardware; },
       "the clock is throttled now: thermal, hardware", MachineSeverity::warning, "cooling"},
      {[](GpuCondition& g) { g.state.now.throttle = k_throttle_set; }, "throttled now: clock_set",
       MachineSeverity::note, "-rgc"},
      {[](GpuCondition& g) { g.state.now.throttle = k_throttle_power; }, "(power limit)", MachineSeverity::note, ""},
      {[](GpuCondition& g) { g.state.now.temperature_celsius = 85.0; }, "85 C", MachineSeverity::warning, "cool"},
  };
}

std::vector<GpuCase> cases_of_set_up() {
  return {
      {[](GpuCondition& g) { g.state.persistence = false; }, "persistence mode is off", MachineSeverity::note, "-pm 1"},
      {[](GpuCondition& g) { g.state.mig = true; }, "MIG", MachineSeverity::warning, "-mig 0"},
      {[](GpuCondition& g) { g.state.partition = "CPX"; }, "partitioned (CPX)", MachineSeverity::warning, "SPX"},
      {[](GpuCondition& g) { g.state.pcie_lanes = 4; }, "4 of 16 lanes", MachineSeverity::warning, "slot"},
      {[](GpuCondition& g) {
         g.holders = {{"nvml", Platform::nvd, 0, 4711, "python3", 3e9}};
       },
       "in use by process 4711 (python3) on GPU 0, 3.00 GB", MachineSeverity::warning, "another GPU"},
      {[](GpuCondition& g) { g.state.now.utilisation = 0.5; }, "50 % busy", MachineSeverity::warning, "user or job"},
      {[](GpuCondition& g) { g.state.now.memory_used_bytes = 9e9; }, "9.00 GB of its memory", MachineSeverity::note,
       ""},
      {[](GpuCondition& g) { g.state.notes = {"energy counter: no permission"}; },
       "not reported: energy counter: no permission", MachineSeverity::note, ""},
  };
}

TEST(GpuChecks, TellWhatIsWrongAndWhatToDo) {
  std::vector<GpuCase> cases = cases_of_health();
  for (const GpuCase& each : cases_of_set_up()) cases.push_back(each);
  for (const GpuCase& each : cases) {
    DoctorFacts facts = sound_gpu_machine();
    each.change(facts.gpus[0]);
    const auto found = find_finding(check_gpus(facts), each.words);
    ASSERT_TRUE(found) << each.words;
    EXPECT_EQ(found->severity, each.severity) << each.words;
    EXPECT_EQ(found->area, "GPU 0");
    EXPECT_NE(found->remedy.find(each.remedy), std::string::npos) << found->remedy;
    EXPECT_EQ(worst_of(check_gpus(facts)), each.severity) << each.words;
  }
}

TEST(GpuChecks, ADeviceThatDoesNotAnswerIsBroken) {
  DoctorFacts facts = sound_gpu_machine();
  facts.gpus[0].state = {};
  facts.gpus[0].state.notes = {"power, clock: the GPU is lost"};
  const auto found = find_finding(check_gpus(facts), "does not answer: power, clock: the GPU is lost");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->severity, MachineSeverity::broken);
  EXPECT_EQ(check_gpus(facts).size(), 1u) << "nothing else is said of it";
}

TEST(DriverChecks, APlatformThatWasAskedForIsMissing) {
  DoctorFacts facts = sound_cpu_machine();
  EXPECT_EQ(worst_of(check_drivers(facts)), MachineSeverity::ok);
  for (const Platform platform : {Platform::nvd, Platform::amd}) {
    facts.request.platform = platform;
    const auto found = find_finding(check_drivers(facts), "the management library finds no");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->severity, MachineSeverity::missing);
    EXPECT_NE(found->remedy.find("apt-get install"), std::string::npos);
  }
}

TEST(DriverChecks, AGpuWithoutADriverIsSeenOnTheBus) {
  DoctorFacts facts = sound_cpu_machine();
  facts.host.pci_gpus = {{"0000:17:00.0", true}};
  facts.refused_libraries = {"NVML (libnvidia-ml.so.1) does not start: the driver is not loaded"};
  EXPECT_EQ(severity_of(check_drivers(facts), "0000:17:00.0"), MachineSeverity::warning);
  EXPECT_EQ(severity_of(check_drivers(facts), "the driver is not loaded"), MachineSeverity::note);
  DoctorFacts served = sound_gpu_machine();
  served.host.pci_gpus = facts.host.pci_gpus;
  EXPECT_EQ(worst_of(check_drivers(served)), MachineSeverity::ok);
}

}  // namespace
}  // namespace tprimat::suite
