#pragma once

#include "planner/step_time.h"

namespace tprimat::planner {

// One step of tprimat's own trainer on a processor whose cores all ranks share (docs/planner.md, "Our own trainer").
// The slowest rank's path takes as long as its threads need, and all ranks together no less than their work over all
// cores: ranks beyond the cores wait for each other's turns, and a pipeline's bubble then costs nothing.
StepTime time_native_step(const Workload& workload, const Machine& machine, const NativeRates& rates);

NativeRates resolve_native_rates(const ParameterSet& parameters, const Machine& machine, const Workload& workload);

}  // namespace tprimat::planner
