#pragma once

#include <vector>

#include "planner/plan_comparison.h"
#include "planner/plan_validation.h"
#include "report/plots/picture.h"

namespace tprimat::results {

// Per table a panel of predicted over published tokens/s per GPU, logarithmic on both axes, and one panel with the
// share of rows whose error is at most so large.
Picture plot_plan_errors(const std::vector<planner::PlannedTable>& tables);

// The curves of `plan --scaling`: throughput and efficiency of the fastest layouts over the number of GPUs. Throws
// Error where no layout fits.
Picture plot_scaling(const planner::PlanComparison& comparison);

}  // namespace tprimat::results
