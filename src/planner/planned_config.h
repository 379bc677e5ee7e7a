#pragma once

#include <string>

#include "planner/plan_report.h"

namespace tprimat {

// A configuration that trains in the layout `line`: its parallelism, and batch, sequence, devices, precision and
// recomputation that it belongs to. The model is written too, unless `configured` names its key in a configuration.
// Throws Error for a precision that configurations do not know.
std::string render_planned_config(const PlanRequest& request, const PlanLine& line, const std::string& configured);

}  // namespace tprimat
