#pragma once

#include <string>

#include "run/forecast.h"

namespace tprimat::suite {

// The planner's memory of a run's layout, part by part, and whether it fits; where it does not, what would.
std::string render_memory(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner);

}  // namespace tprimat::suite
