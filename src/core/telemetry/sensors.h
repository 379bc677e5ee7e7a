#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/gpu_libraries.h"
#include "telemetry/gpu_library.h"
#include "telemetry/sensor.h"

namespace tprimat {

// The processes and devices to watch during a run.
struct WatchRequest {
  pid_t root = 0;                                            // first process of the run
  int64_t threads = 1;                                       // that the run may use: the capacity behind "utilisation"
  std::vector<std::shared_ptr<const GpuLibrary>> libraries;  // their devices are watched
  std::optional<GpuUse> gpus = std::nullopt;                 // these of them; absent: all
};

// All sensors that this machine has, in the order in which they appear in a result: "proc" (the tree), "proc:machine",
// "rapl", one per GPU.
std::vector<std::unique_ptr<Sensor>> open_sensors(const WatchRequest& request);

// Energy of the processor packages and, where it is counted apart, their memory: the kernel's powercap counters (Intel
// RAPL and its AMD equivalent). Null when the machine has none or this user may not read them (usually only root may).
std::unique_ptr<Sensor> open_rapl(const std::filesystem::path& powercap = "/sys/class/powercap");

// Resources that a process and its descendants use, from /proc.
struct TreeUsage {
  size_t processes = 0;
  double cpu_seconds = 0.0;  // user and system time, children that ended and were waited for included
  // Pages that each process has alone, plus the largest shared part of any of them: shared libraries are counted once.
  // Cheaper than PSS, which walks the page tables and would disturb the run.
  double memory_bytes = 0.0;
};

// Nothing when the process is gone. `proc` is the folder to read, for tests.
std::optional<TreeUsage> read_tree_usage(pid_t root, const std::filesystem::path& proc = "/proc");

// The process and its descendants.
std::vector<pid_t> list_tree(pid_t root, const std::filesystem::path& proc = "/proc");

// Busy and total processor time of the whole machine, in ticks of any unit.
struct MachineTicks {
  double busy = 0.0, total = 0.0;
};
std::optional<MachineTicks> parse_machine_ticks(const std::string& proc_stat);

}  // namespace tprimat
