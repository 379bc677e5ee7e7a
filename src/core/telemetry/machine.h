#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/cpu_facts.h"
#include "telemetry/gpu_library.h"
#include "text/fields.h"

namespace tprimat {

// What this machine is. Facts that it does not give are absent.
struct MachineFacts {
  Platform platform = Platform::cpu;  // what `--platform auto` means here
  CpuFacts cpu;
  std::optional<double> memory_bytes;        // installed
  std::optional<double> memory_limit_bytes;  // of the container or control group
  std::optional<int64_t> numa_nodes;
  std::string kernel, architecture;
  std::optional<std::string> distribution;
  std::optional<std::string> container;        // "docker", "kubernetes" ...; absent outside of one
  std::optional<std::string> virtual_machine;  // "KVM" ...; absent on bare metal
  std::optional<std::string> transparent_huge_pages;
  std::map<std::string, std::string> drivers;  // "nvml" -> "550.54.15"
  std::map<std::string, std::string> stacks;   // "cuda" -> "12.4"
  std::vector<GpuFacts> gpus;
  static constexpr auto fields() {
    using M = MachineFacts;
    return field_list(
        field("platform", &M::platform, "what --platform auto means here"), field("cpu", &M::cpu, "the processor"),
        field("memory_bytes", &M::memory_bytes, "installed memory, bytes"),
        field("memory_limit_bytes", &M::memory_limit_bytes, "limit of the container or control group, bytes"),
        field("numa_nodes", &M::numa_nodes, "memory domains"), field("kernel", &M::kernel, "kernel and its release"),
        field("architecture", &M::architecture, "instruction set architecture"),
        field("distribution", &M::distribution, "operating system"),
        field("container", &M::container, "container runtime, when inside one"),
        field("virtual_machine", &M::virtual_machine, "hypervisor, when inside one"),
        field("transparent_huge_pages", &M::transparent_huge_pages, "setting of the kernel"),
        field("drivers", &M::drivers, "GPU driver versions by management library"),
        field("stacks", &M::stacks, "newest CUDA or ROCm that the driver serves"),
        field("gpus", &M::gpus, "GPUs that a management library sees"));
  }
};

// Reads /proc, /sys and /etc below `root`; kernel, architecture and affinity come from the running system.
MachineFacts read_machine(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                          const std::filesystem::path& root = "/");

}  // namespace tprimat
