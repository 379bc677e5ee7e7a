#pragma once

#include <string>

#include "planner/plan_comparison.h"

namespace tprimat {

// Draws how tokens/s and tokens/s/GPU go with the number of GPUs, one curve per part. Throws Error where gnuplot is
// missing (4) or fails (1), and for a path that is no .png or .svg (2).
void draw_scaling(const PlanComparison& comparison, const std::string& path);

}  // namespace tprimat
