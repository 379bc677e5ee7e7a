#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// AMD Primus, its Megatron back end: a checkout (`paths.primus.installation`, PRIMUS_PATH) whose start script runs the
// experiment file that we write. Its steps stand in its log.
std::optional<Installation> find_prim(const Checkout& checkout);
TrainProgram plan_prim(const LaunchRequest& request);

}  // namespace tprimat::suite
