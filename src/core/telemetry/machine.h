#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/gpu_library.h"
#include "text/fields.h"

namespace tprimat {

struct CpuFacts {
  std::string model_name;
  std::optional<int64_t> sockets, cores;  // physical
  int64_t logical_processors = 1;
  int64_t usable_threads = 1;  // of those, the share that affinity and the container's quota leave to this process
  std::vector<std::string> instruction_sets;  // those that decide the speed of matrix products
  std::optional<double> max_mhz;
  std::optional<std::string> governor;
  static constexpr auto fields() {
    using C = CpuFacts;
    return field_list(
        field("model_name", &C::model_name, "as the processor gives it"),
        field("sockets", &C::sockets, "processor packages"),
        field("cores", &C::cores, "physical cores of all packages"),
        field("logical_processors", &C::logical_processors, "hardware threads that are online"),
        field("usable_threads", &C::usable_threads, "threads that affinity and CPU quota leave to this process"),
        field("instruction_sets", &C::instruction_sets, "those that decide the speed of matrix products"),
        field("max_mhz", &C::max_mhz, "highest clock, MHz"),
        field("governor", &C::governor, "frequency governor of processor 0"));
  }
};

// `root` is "/"; tests give a folder with copies of /proc and /sys files. `affinity` is the number of processors this
// process may run on.
CpuFacts read_cpu_facts(const std::filesystem::path& root, int64_t affinity);

// Processors in this process's affinity mask, ascending, and their number.
std::vector<int> affinity();
int64_t count_affinity();

// Limits of the control group (version 1 or 2) that this process is in, its parents included. Absent: no limit.
struct CgroupLimits {
  std::optional<double> processors;
  std::optional<double> memory_bytes;
};
CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

// Memory that the kernel can still allocate (MemAvailable), at most the control group's limit. Absent: not known.
std::optional<double> available_memory_bytes(const std::filesystem::path& root);

// The facts of this machine. Absent: not known.
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
