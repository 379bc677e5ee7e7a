#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "doctor/diagnosis.h"
#include "telemetry/sensor.h"

namespace tprimat::suite {

inline HostFacts quiet_host() {
  HostFacts host;
  host.governors = {"performance"};
  host.turbo = host.smt = host.numa_balancing = false;
  host.load = 0.1;
  host.busy_share = 0.01;
  host.stolen_share = 0.0;
  host.available_memory_bytes = 60e9;
  host.swap_bytes = host.swap_used_bytes = 0.0;
  host.shared_memory_bytes = host.shared_memory_free_bytes = 32e9;
  host.locked_memory = ResourceLimit{};
  host.open_files = ResourceLimit{65536.0};
  host.core_file = ResourceLimit{0.0};
  host.clock_source = "tsc";
  return host;
}

// A machine without GPUs on which nothing is wrong.
inline DoctorFacts sound_cpu_machine() {
  DoctorFacts facts;
  facts.machine.platform = Platform::cpu;
  facts.machine.cpu.model_name = "Test CPU";
  facts.machine.cpu.logical_processors = facts.machine.cpu.usable_threads = 8;
  facts.machine.memory_bytes = 64e9;
  facts.machine.kernel = "Linux 6.1";
  facts.machine.distribution = "Debian 12";
  facts.machine.transparent_huge_pages = "madvise";
  facts.host = quiet_host();
  facts.output = {"/data", 500e9, true};
  return facts;
}

inline GpuCondition idle_gpu() {
  GpuCondition gpu;
  gpu.name = "GPU 0";
  gpu.facts = {Platform::nvd, 0, "NVIDIA H100 80GB HBM3", 80e9, 700.0, {}};
  gpu.state.ecc = true;
  gpu.state.uncorrected_errors = 0;
  gpu.state.persistence = true;
  gpu.state.mig = false;
  gpu.state.max_clock_hz = 1.98e9;
  gpu.state.slowdown_celsius = 89.0;
  gpu.state.pcie_lanes = gpu.state.max_pcie_lanes = 16;
  gpu.state.now.power_watts = 70.0;
  gpu.state.now.temperature_celsius = 31.0;
  gpu.state.now.clock_hz = 345e6;
  gpu.state.now.memory_used_bytes = 0.5e9;
  gpu.state.now.utilisation = 0.0;
  gpu.state.now.throttle = 0;
  return gpu;
}

// The same with one GPU of NVIDIA at rest.
inline DoctorFacts sound_gpu_machine() {
  DoctorFacts facts = sound_cpu_machine();
  facts.machine.platform = Platform::nvd;
  facts.gpus = {idle_gpu()};
  facts.machine.drivers["nvml"] = "550.54.15";
  facts.machine.stacks["cuda"] = "12.4";
  return facts;
}

// The first finding whose sentence holds the words.
inline std::optional<MachineFinding> find_finding(const std::vector<MachineFinding>& findings,
                                                  const std::string& words) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const MachineFinding& finding) {
    return finding.what.find(words) != std::string::npos;
  });
  return found == findings.end() ? std::nullopt : std::optional(*found);
}

inline MachineSeverity severity_of(const std::vector<MachineFinding>& findings, const std::string& words) {
  const auto found = find_finding(findings, words);
  return found ? found->severity : MachineSeverity::ok;
}

inline MachineSeverity worst_of(const std::vector<MachineFinding>& findings) {
  return MachineDiagnosis{findings}.worst();
}

}  // namespace tprimat::suite
