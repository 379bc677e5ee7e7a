#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/process.h"

namespace tprimat {

struct Captured {
  ExitReason exit;
  std::string output;  // stdout and stderr together, at most 1 MiB
};

// Runs a short command to its end, for instance to ask a program for its version. Nothing when the program is not
// installed. Its stdin is the file `input_path`; empty: nothing. It is ended soon after `is_stopped` says so.
std::optional<Captured> run_captured(ProcessRunner& runner, std::vector<std::string> argv,
                                     double time_limit_seconds = 10.0, const std::string& input_path = "",
                                     const std::function<bool()>& is_stopped = {});

}  // namespace tprimat
