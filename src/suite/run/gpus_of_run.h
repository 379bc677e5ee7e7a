#pragma once

#include <optional>

#include "run/suite_plan.h"
#include "telemetry/gpu_libraries.h"

namespace tprimat::suite {

// The GPUs of this machine that a run works on: the first that it sees, one for each of its ranks here. By
// `visible_devices` of the configuration, else by this program's environment, which processes that the run starts
// inherit and containers do not. Nothing on cpu: what is not used does not count there.
std::optional<GpuUse> gpus_of(const PlannedRun& run);

}  // namespace tprimat::suite
