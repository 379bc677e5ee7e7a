#pragma once

#include <optional>
#include <string>

#include "extract/common/failure_cause.h"
#include "process/process.h"

namespace tprimat::suite {

// The last few megabytes of a log, in whole lines, up to byte `until` if given. Empty if it cannot be read.
std::string read_log_end(const std::string& path, std::optional<int64_t> until = std::nullopt);

// Why a training failed: "out of memory on rank 2: tried to allocate 1.50 GiB", "missing module: ...", "killed by
// signal 9 (SIGKILL)", "exit status 3: <its last line>".
logs::EndCause explain_failure(const ExitReason& exit, const std::string& log_end);

// The failure that a log shows, without its consequences. For a training that was stopped because it hung.
std::optional<logs::EndCause> find_failure_in(const std::string& log_end);

// Number of out-of-memory kills by the kernel since boot; 0 if unknown. An increase during a run explains a SIGKILL.
double count_memory_kills(const std::string& vmstat_path = "/proc/vmstat");

}  // namespace tprimat::suite
