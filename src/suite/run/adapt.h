#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_plan.h"
#include "planner/parameters.h"
#include "run/suite_plan.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// A request that the framework supports and that fits into the devices' memory, and how it differs from the one asked
// for, each difference with its reason.
struct Adaptation {
  LaunchRequest request;
  std::vector<Deviation> differences;
};

// The supported request nearest to that of `run`, whose plan need not exist: first with the number format and the
// formats of the optimizer's state as asked, then with others, each time with the nearest layout, micro-batch and
// recomputation. Formats of 16 bits, then the host's memory, are taken only where nothing else fits. Nothing where the
// framework refuses every one.
std::optional<Adaptation> find_nearest_request(const PlannedRun& run, const MachineFacts& machine,
                                               const planner::PlannerSettings& planner);

// What was adapted, training by training, as a table: "tran  llama  TP 4 -> 1, DP 2 -> 8  the framework 'tran' ...".
// Empty where nothing was.
std::string render_adaptations(const SuitePlan& suite);

}  // namespace tprimat::suite
