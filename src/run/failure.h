#pragma once

#include <deque>
#include <string>

#include "process/exit_reason.h"

namespace tprimat {

// Why a training that did not end well did so, in a few words: "out of memory: ...", "missing module 'torch'", "killed
// by signal 9 (SIGKILL)", "exit status 3: <its last line>". `last_lines` is the end of its log, oldest first.
std::string explain_failure(const ExitReason& exit, const std::deque<std::string>& last_lines);

// Times that the kernel has killed a process for want of memory since boot; 0 where it does not say. A difference over
// a run explains a SIGKILL.
double count_memory_kills(const std::string& vmstat_path = "/proc/vmstat");

}  // namespace tprimat
