#pragma once

#include <memory>
#include <vector>

#include "launch/launch_plan.h"
#include "run/suite_context.h"
#include "telemetry/sensors.h"

namespace tprimat::suite {

// The sensors that say something of the run: none where its ranks are on other machines, and no process tree where a
// daemon of this one started them.
std::vector<std::unique_ptr<Sensor>> open_sensors_for(const LaunchPlan& plan, const WatchRequest& request);

// Ends ranks that may outlive the command that asked for them, a job or a container, when that command was stopped.
// Never throws Error: what cannot be ended is said in the log of this program.
void end_outside_ranks(const LaunchPlan& plan, const SuiteContext& around);

}  // namespace tprimat::suite
