#pragma once

#include <optional>

#include "launch/frameworks.h"

namespace tprimat::suite {

// A checkout of Primus that can train with Megatron-Bridge on a recipe of ours (v26.5 or later); nothing: there is
// none.
std::optional<Installation> find_nemo_in_primus(const Checkout& checkout);

// The same training by Primus' back end megatron_bridge. Its steps and settings are read from its log.
TrainProgram plan_nemo_in_primus(const LaunchRequest& request);

// Refuses what this way to NeMo does not support beyond NeMo's own limits.
void add_primus_limits(Refusals& refusals, const LaunchRequest& request);

}  // namespace tprimat::suite
