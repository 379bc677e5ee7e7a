#pragma once

#include <string>

#include "planner/plan_comparison.h"
#include "process/process.h"

namespace tprimat::results {

// Draws how tokens/s and tokens/s/GPU go with the number of GPUs, one curve per part. Throws Error where gnuplot is
// missing (4) or fails (1), and for a path that is no .png or .svg (2).
void draw_scaling(ProcessRunner& runner, const planner::PlanComparison& comparison, const std::string& path);

}  // namespace tprimat::results
