#pragma once

#include <optional>
#include <string>

#include "extract/common/failure_cause.h"
#include "process/process.h"

namespace tprimat::suite {

// The last few megabytes of a log, whole lines, of what stood before byte `until` where that is given. Empty where it
// cannot be read.
std::string read_log_end(const std::string& path, std::optional<int64_t> until = std::nullopt);

// Why a training that did not end well did so: "out of memory on rank 2: tried to allocate 1.50 GiB", "missing module:
// ...", "killed by signal 9 (SIGKILL)", "exit status 3: <its last line>".
logs::EndCause explain_failure(const ExitReason& exit, const std::string& log_end);

// What a log shows of a failure, its own consequences aside. For a training that was stopped because it hung.
std::optional<logs::EndCause> find_failure_in(const std::string& log_end);

// Times that the kernel has killed a process because memory ran out, since boot; 0 where it does not say. A difference
// over a run explains a SIGKILL.
double count_memory_kills(const std::string& vmstat_path = "/proc/vmstat");

}  // namespace tprimat::suite
