#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// Megatron-LM: pretrain_gpt.py of a checkout (`paths.megatron`, MEGATRON_PATH), under torchrun. Its log tells the
// steps.
std::optional<Installation> find_mega(const Checkout& checkout);
TrainProgram plan_mega(const LaunchRequest& request);

}  // namespace tprimat::suite
