#pragma once

#include "cli/from_plan.h"
#include "command_line/session.h"
#include "planner/parameters.h"
#include "run/suite_plan.h"
#include "telemetry/machine.h"

namespace tprimat::cli {

// A note where the plan is for devices that this machine lacks, and nobody asked for them by name.
void note_other_platform(const suite::SuitePlan& suite, const MachineFacts& machine);

// The dry run: what would be started, as text, as a script (--verbose) or as JSON. Starts nothing.
ExitStatus print_plan(const suite::SuitePlan& suite, const LayoutPlans& layouts, const MachineFacts& machine,
                      const planner::PlannerSettings& planner, const Session& session);

}  // namespace tprimat::cli
