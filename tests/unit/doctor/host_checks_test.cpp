#include <gtest/gtest.h>

#include "doctor_fixture.h"

namespace tprimat::suite {
namespace {

struct HostCase {
  Check check;
  void (*change)(DoctorFacts&);
  const char* words;
  MachineSeverity severity;
  const char* remedy;
};

TEST(HostChecks, FindNothingWrongWithASoundMachine) {
  const DoctorFacts facts = sound_cpu_machine();
  for (const Check check : {check_processor, check_memory, check_storage, check_limits, check_system})
    EXPECT_EQ(worst_of(check(facts)), MachineSeverity::ok);
}

std::vector<HostCase> cases_of_processor_load() {
  return {
      {check_processor, [](DoctorFacts& f) { f.host.busy_share = 0.5; }, "4.0 of 8 hardware threads busy",
       MachineSeverity::warning, "top"},
      {check_processor, [](DoctorFacts& f) { f.host.stolen_share = 0.07; }, "7.0 % of the CPU time",
       MachineSeverity::warning, "machine"},
      {check_processor, [](DoctorFacts& f) { f.host.load = 20.0; }, "load average 20.0", MachineSeverity::note, ""},
  };
}

std::vector<HostCase> cases_of_processor_settings() {
  return {
      {check_processor, [](DoctorFacts& f) { f.host.governors.push_back("powersave"); },
       "frequency governor: performance, powersave", MachineSeverity::warning, "cpupower"},
      {check_processor, [](DoctorFacts& f) { f.host.governors.clear(); }, "governor: unknown", MachineSeverity::note,
       ""},
      {check_processor, [](DoctorFacts& f) { f.host.turbo = true; }, "turbo is on", MachineSeverity::note, "spread"},
      {check_processor, [](DoctorFacts& f) { f.host.smt = true; }, "SMT", MachineSeverity::note, ""},
      {check_processor, [](DoctorFacts& f) { f.machine.cpu.usable_threads = 2; }, "2 of 8 hardware threads",
       MachineSeverity::note, ""},
      {check_processor,
       [](DoctorFacts& f) {
         f.machine.numa_nodes = 2;
         f.host.numa_balancing = true;
       },
       "2 NUMA nodes", MachineSeverity::warning, "kernel.numa_balancing=0"},
  };
}

std::vector<HostCase> cases_of_memory() {
  return {
      {check_memory, [](DoctorFacts& f) { f.host.available_memory_bytes = 1e9; }, "1.00 GB available",
       MachineSeverity::warning, "memory"},
      {check_memory, [](DoctorFacts& f) { f.host.swap_used_bytes = 3e9; }, "3.00 GB swapped out",
       MachineSeverity::warning, "swapoff"},
      {check_memory, [](DoctorFacts& f) { f.machine.transparent_huge_pages = "never"; }, "huge pages are off",
       MachineSeverity::note, "madvise"},
  };
}

std::vector<HostCase> cases_of_storage() {
  return {
      {check_storage, [](DoctorFacts& f) { f.output.free_bytes = 1e6; }, "0.00 GB free", MachineSeverity::broken,
       "--output"},
      {check_storage, [](DoctorFacts& f) { f.output.free_bytes = 1e9; }, "1.00 GB free", MachineSeverity::warning,
       "free some space"},
      {check_storage, [](DoctorFacts& f) { f.output.writable = false; }, "/data is not writable",
       MachineSeverity::broken, "--output"},
      {check_storage, [](DoctorFacts& f) { f.host.shared_memory_free_bytes = 64e6; }, "/dev/shm",
       MachineSeverity::warning, "--shm-size"},
  };
}

std::vector<HostCase> cases_of_limits() {
  return {
      {check_limits, [](DoctorFacts& f) { f.host.open_files = ResourceLimit{1024.0}; }, "open files: 1024",
       MachineSeverity::note, "ulimit -n"},
      {check_limits, [](DoctorFacts& f) { f.host.core_file = ResourceLimit{}; }, "core files: unlimited",
       MachineSeverity::note, "ulimit -c 0"},
      {check_limits,
       [](DoctorFacts& f) {
         f.request.platform = Platform::nvd;
         f.host.locked_memory = ResourceLimit{65536.0};
       },
       "locked memory", MachineSeverity::warning, "memlock"},
  };
}

std::vector<HostCase> cases_of_system() {
  return {
      {check_system, [](DoctorFacts& f) { f.machine.virtual_machine = "KVM"; }, "virtual machine (KVM)",
       MachineSeverity::note, ""},
      {check_system, [](DoctorFacts& f) { f.machine.container = "docker"; }, "inside a container (docker)",
       MachineSeverity::note, ""},
      {check_system, [](DoctorFacts& f) { f.host.clock_source = "hpet"; }, "clock source hpet",
       MachineSeverity::warning, "tsc"},
  };
}

TEST(HostChecks, TellWhatIsWrongAndWhatToDo) {
  for (const auto& cases : {cases_of_processor_load(), cases_of_processor_settings(), cases_of_memory(),
                            cases_of_storage(), cases_of_limits(), cases_of_system()})
    for (const HostCase& each : cases) {
      DoctorFacts facts = sound_cpu_machine();
      each.change(facts);
      const auto found = find_finding(each.check(facts), each.words);
      ASSERT_TRUE(found) << each.words;
      EXPECT_EQ(found->severity, each.severity) << each.words;
      EXPECT_NE(found->remedy.find(each.remedy), std::string::npos) << found->remedy;
    }
}

TEST(HostChecks, SayNothingOfWhatIsNotKnown) {
  DoctorFacts facts;
  facts.output.writable = true;
  EXPECT_LE(worst_of(diagnose(facts).findings), MachineSeverity::note);
}

}  // namespace
}  // namespace tprimat::suite
