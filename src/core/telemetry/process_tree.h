#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// What a process and its descendants use, from /proc.
struct TreeUsage {
  size_t processes = 0;
  double cpu_seconds = 0.0;  // user and system time, children that ended and were waited for included
  // Pages that each process has alone, plus the largest shared part of any of them: shared libraries are counted once.
  // Cheaper than PSS, which walks the page tables and would disturb the run that it measures.
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
