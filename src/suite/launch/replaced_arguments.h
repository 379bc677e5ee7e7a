#pragma once

#include <string>
#include <vector>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// Additional arguments of a framework's program follow its plan's own, and a program takes the last value of a flag.
// For each flag that `added` states otherwise than `planned`, the value of the plan, the one that holds, and `where` it
// is stated.
std::vector<Deviation> list_replaced_arguments(const std::vector<std::string>& planned,
                                               const std::vector<std::string>& added, const std::string& where);

}  // namespace tprimat::suite
