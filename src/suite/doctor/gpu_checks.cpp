#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/checks.h"
#include "telemetry/sensor.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_near_slowdown_celsius = 5.0;  // closer than this to the temperature at which the clock is lowered
constexpr double k_hot_celsius = 85.0;           // where the device does not report that temperature
constexpr double k_busy_gpu_share = 0.05;
constexpr double k_used_memory_share = 0.02;  // the driver's own part is smaller

std::string how_to_bring_platform(Platform platform) {
  if (platform == Platform::nvd)
    return "install NVIDIA's driver (Debian: sudo apt-get install nvidia-driver); start a container with --gpus all";
  return "install the driver and AMD SMI (sudo apt-get install amdgpu-dkms amd-smi-lib); start a container with "
         "--device /dev/kfd --device /dev/dri";
}

std::vector<std::string> addresses_without_driver(const DoctorFacts& facts, bool nvidia) {
  const Platform platform = nvidia ? Platform::nvd : Platform::amd;
  std::vector<std::string> addresses;
  for (const PciGpu& gpu : facts.host.pci_gpus)
    if (gpu.nvidia == nvidia) addresses.push_back(gpu.address);
  const bool seen = std::any_of(facts.gpus.begin(), facts.gpus.end(),
                                [&](const GpuCondition& gpu) { return gpu.facts.platform == platform; });
  return seen ? std::vector<std::string>() : addresses;
}

bool is_silent(const Reading& now) {
  return !now.power_watts && !now.temperature_celsius && !now.clock_hz && !now.memory_used_bytes;
}

std::string describe_gpu(const GpuCondition& gpu) {
  std::string text = gpu.facts.name;
  const Reading& now = gpu.state.now;
  if (gpu.facts.memory_bytes) text += ", " + format_gb(*gpu.facts.memory_bytes);
  if (gpu.facts.power_limit_watts) text += fmt::format(", limit {:.0f} W", *gpu.facts.power_limit_watts);
  if (now.clock_hz) text += fmt::format(", clock now {:.0f} MHz", *now.clock_hz * 1e-6);
  if (gpu.state.max_clock_hz) text += fmt::format(" of {:.0f} MHz", *gpu.state.max_clock_hz * 1e-6);
  return text;
}

void judge_errors(const GpuCondition& gpu, AreaFindings& findings) {
  const bool nvidia = gpu.facts.platform == Platform::nvd;
  if (gpu.state.uncorrected_errors.value_or(0) > 0)
    findings.add(
        MachineSeverity::broken, "gpu_errors",
        fmt::format("{} uncorrected memory errors since the driver was loaded", *gpu.state.uncorrected_errors),
        nvidia ? fmt::format("reset it (sudo nvidia-smi --gpu-reset -i {}); replace it if they return", gpu.facts.index)
               : fmt::format("reset it (sudo amd-smi reset --gpureset -g {}); replace it if they return",
                             gpu.facts.index));
  else if (gpu.state.ecc == false)
    findings.note("ECC is off: bandwidth and memory capacity differ from GPUs with ECC on",
                  nvidia ? fmt::format("sudo nvidia-smi -i {} -e 1, then reboot", gpu.facts.index) : "");
  else if (gpu.state.uncorrected_errors)
    findings.ok("no uncorrected memory errors");
}

void judge_clock(const GpuCondition& gpu, AreaFindings& findings) {
  if (!gpu.state.now.throttle) return;
  const uint32_t throttle = *gpu.state.now.throttle;
  std::vector<std::string_view> reasons;
  for (const ThrottleName& each : k_throttle_names)
    if ((throttle & each.reason) != 0) reasons.push_back(each.name);
  const std::string what = fmt::format("the clock is throttled now: {}", join(reasons, ", "));
  if ((throttle & (k_throttle_thermal | k_throttle_hardware | k_throttle_current)) != 0)
    findings.warn("gpu_throttled", what, "check cooling and power supply before you measure");
  else if ((throttle & k_throttle_set) != 0)
    findings.note(what, fmt::format("reset a locked clock: sudo nvidia-smi -i {0} -rgc && sudo nvidia-smi -i {0} -rac",
                                    gpu.facts.index));
  else if ((throttle & k_throttle_power) != 0)
    findings.note(what + " (power limit)");
  else
    findings.ok("the clock is not throttled");
}

void judge_temperature(const GpuCondition& gpu, AreaFindings& findings) {
  const auto& now = gpu.state.now.temperature_celsius;
  if (!now) return;
  const double hot = gpu.state.slowdown_celsius ? *gpu.state.slowdown_celsius - k_near_slowdown_celsius : k_hot_celsius;
  std::string what = fmt::format("{:.0f} C", *now);
  if (gpu.state.slowdown_celsius) what += fmt::format(", slowdown at {:.0f} C", *gpu.state.slowdown_celsius);
  if (*now >= hot)
    findings.warn("gpu_hot", what, "let it cool down, and check the cooling");
  else
    findings.ok(what);
}

void judge_setup(const GpuCondition& gpu, AreaFindings& findings) {
  const GpuState& state = gpu.state;
  if (state.persistence == false)
    findings.note("persistence mode is off: the driver may reload for every run", "sudo nvidia-smi -pm 1");
  if (state.mig == true)
    findings.warn("gpu_partitioned", "MIG is on: a run gets part of the GPU, but peaks are for the whole GPU",
                  fmt::format("sudo nvidia-smi -i {} -mig 0", gpu.facts.index));
  if (state.partition && *state.partition != "SPX")
    findings.warn(
        "gpu_partitioned",
        fmt::format("partitioned ({}): a run gets part of the GPU, but peaks are for the whole GPU", *state.partition),
        fmt::format("sudo amd-smi set -g {} --compute-partition SPX", gpu.facts.index));
  if (state.pcie_lanes && state.max_pcie_lanes && *state.pcie_lanes < *state.max_pcie_lanes)
    findings.warn("pcie_lanes",
                  fmt::format("the PCIe link uses {} of {} lanes", *state.pcie_lanes, *state.max_pcie_lanes),
                  "check the slot and riser");
}

void judge_neighbours(const GpuCondition& gpu, AreaFindings& findings) {
  for (const GpuProcess& holder : gpu.holders)
    findings.warn("gpu_shared", "in use by " + describe(holder), "stop it, or choose another GPU");
  if (!gpu.holders.empty()) return;
  const Reading& now = gpu.state.now;
  if (now.utilisation.value_or(0.0) > k_busy_gpu_share)
    findings.warn("gpu_busy",
                  fmt::format("{} busy with processes not visible from here", format_percent(*now.utilisation, 0)),
                  "find the user or job that holds it");
  const bool used = now.memory_used_bytes && gpu.facts.memory_bytes &&
                    *now.memory_used_bytes > k_used_memory_share * *gpu.facts.memory_bytes;
  if (used)
    findings.note(format_gb(*now.memory_used_bytes) + " of its memory is in use by processes not visible from here");
}

}  // namespace

static void add_platform(AreaFindings& findings, const DoctorFacts& facts) {
  const Platform platform = facts.platform();
  const bool there =
      platform == Platform::cpu || std::any_of(facts.gpus.begin(), facts.gpus.end(),
                                               [&](const auto& gpu) { return gpu.facts.platform == platform; });
  if (there)
    findings.ok(fmt::format("{}{}", display_name(platform), facts.gpus.empty() ? ", no GPU found" : ""));
  else
    findings.add(MachineSeverity::missing, "no_gpu",
                 fmt::format("the management library finds no {} GPU", display_name(platform)),
                 how_to_bring_platform(platform));
}

std::vector<MachineFinding> check_drivers(const DoctorFacts& facts) {
  AreaFindings findings("platform");
  add_platform(findings, facts);
  for (const bool nvidia : {true, false})
    if (const auto addresses = addresses_without_driver(facts, nvidia); !addresses.empty())
      findings.warn("no_driver",
                    fmt::format("{} GPU on the PCI bus without a working driver: {}", nvidia ? "NVIDIA" : "AMD",
                                join(addresses, ", ")),
                    how_to_bring_platform(nvidia ? Platform::nvd : Platform::amd));
  for (const std::string& refusal : facts.refused_libraries)
    findings.note(refusal, facts.host.pci_gpus.empty() ? "" : "install the same release of library and driver");
  for (const auto& [library, version] : facts.machine.drivers)
    findings.ok(fmt::format("driver {} ({})", version, library));
  for (const auto& [stack, version] : facts.machine.stacks)
    findings.ok(fmt::format("{} {}", stack == "cuda" ? "CUDA up to" : "ROCm", version));
  return findings.take();
}

std::vector<MachineFinding> check_gpus(const DoctorFacts& facts) {
  std::vector<MachineFinding> all;
  for (const GpuCondition& gpu : facts.gpus) {
    AreaFindings findings(gpu.name);
    if (is_silent(gpu.state.now)) {
      findings.add(MachineSeverity::broken, "gpu_silent",
                   fmt::format("does not answer: {}", join(gpu.state.notes, "; ")),
                   "check dmesg for the cause; reset it or reboot the machine");
    } else {
      findings.ok(describe_gpu(gpu));
      judge_errors(gpu, findings);
      judge_clock(gpu, findings);
      judge_temperature(gpu, findings);
      judge_setup(gpu, findings);
      judge_neighbours(gpu, findings);
      for (const std::string& note : gpu.state.notes) findings.note("not reported: " + note);
    }
    for (MachineFinding& finding : findings.take()) all.push_back(std::move(finding));
  }
  return all;
}

}  // namespace tprimat::suite
