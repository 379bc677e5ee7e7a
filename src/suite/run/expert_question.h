#pragma once

#include <vector>

#include "config/experiment.h"
#include "planner/search.h"
#include "run/plan_question.h"

namespace tprimat::suite {

// --routing, --dispatcher and --expert-load, else what the configuration says of a model that it has. Throws Error for
// a dense model, and for options that contradict each other or the framework.
void take_expert_options(planner::PlanRequest& request, const PlanModelOptions& options, const Experiment& experiment);

// --tuned, --graphs, --expert-overlap, --moment-bytes and --gradient-bytes, of a request with its machine, precision
// and recipe. Throws Error where program or GPU cannot do so, and for a dispatcher that GPUs of the vendor do not have.
void take_tuning(planner::PlanRequest& request, const PlanModelOptions& options);

// --recipe. Throws Error where it is of no use: without FP8 products, or on a GPU that cannot scale so.
void take_recipe(planner::PlanRequest& request, const PlanModelOptions& options,
                 const std::vector<planner::Machine>& machines);

}  // namespace tprimat::suite
