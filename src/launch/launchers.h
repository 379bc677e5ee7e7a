#pragma once

#include <string>
#include <vector>

#include "launch/launch_plan.h"

namespace tprimat {

bool is_in_path(const std::string& program);

// The command that starts the ranks of a program on this machine. Throws Error (ExitStatus::missing_component) that
// names the package where a launcher is missing.
std::vector<std::string> start_ranks(const TrainProgram& program, int64_t ranks);

}  // namespace tprimat
