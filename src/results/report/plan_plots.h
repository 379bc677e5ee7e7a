#pragma once

#include <string>
#include <vector>

#include "planner/plan_comparison.h"
#include "planner/plan_validation.h"
#include "report/report.h"

namespace tprimat::results {

// A gnuplot script with its data inside: per table a panel of predicted over published tokens/s per GPU, logarithmic on
// both axes, and one panel with the share of rows whose error is at most so large.
std::string render_plan_plot(const std::vector<planner::PlannedTable>& tables, PlotFormat format);

// Likewise the curves of `plan --scaling`: throughput and efficiency of the fastest layouts over the number of GPUs.
// Throws Error where no layout fits.
std::string render_scaling_plot(const planner::PlanComparison& comparison, PlotFormat format);

}  // namespace tprimat::results
