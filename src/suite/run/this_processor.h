#pragma once

#include <string>

#include "planner/machine.h"

namespace tprimat::suite {

// "cpu": the processor that this runs on, measured now, for a few seconds. Throws Error.
inline bool is_this_processor(const std::string& name) { return name == "cpu"; }
planner::Machine measure_processor();

}  // namespace tprimat::suite
