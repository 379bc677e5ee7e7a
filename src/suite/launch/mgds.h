#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// Megatron-DeepSpeed: pretrain_gpt.py of a checkout (`paths.megatron_deepspeed`, MEGATRON_DEEPSPEED_PATH) with a
// ds_config.json, under torchrun. Its log tells the steps.
std::optional<Installation> find_mgds(const Checkout& checkout);
TrainProgram plan_mgds(const LaunchRequest& request);

}  // namespace tprimat::suite
