#pragma once

#include "cli/plan_options.h"
#include "command_line/session.h"

namespace tprimat::cli {

// `configured`: the configuration that holds.
ExitStatus plan_model(const Session& session, const PlanModelRequest& request,
                      const suite::LoadedExperiment& configured, const planner::PlannerSettings& planner);

}  // namespace tprimat::cli
