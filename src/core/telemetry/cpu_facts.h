#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat {

struct CpuFacts {
  std::string model_name;
  std::optional<int64_t> sockets, cores;  // physical
  int64_t logical_processors = 1;
  int64_t usable_threads = 1;                 // of those, what affinity and the container's quota leave to this process
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

// Processors in this process's affinity mask.
int64_t count_affinity();

// Limits of the control group (version 1 or 2) that this process is in, its parents included. Absent: no limit.
struct CgroupLimits {
  std::optional<double> processors;
  std::optional<double> memory_bytes;
};
CgroupLimits read_cgroup_limits(const std::filesystem::path& root);

// What the kernel would still hand out, by MemAvailable, and not above the control group's limit. Absent: not known.
std::optional<double> available_memory_bytes(const std::filesystem::path& root);

}  // namespace tprimat
