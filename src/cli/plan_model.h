#pragma once

#include <string>

#include "cli/plan_options.h"
#include "cli/session.h"
#include "config/load.h"
#include "planner/planner_settings.h"

namespace tprimat {

// `configured`: the configuration that holds.
ExitStatus plan_model(const Session& session, const PlanModelOptions& options, const LoadedExperiment& configured,
                      const PlannerSettings& planner);

}  // namespace tprimat
