#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// PyTorch FSDP2 (fully_shard), driven by frameworks/train_fsdp.py under torchrun. Without a zero_stage it shares
// everything, as ZeRO-3.
std::optional<Installation> find_fsdp(const Checkout&);
TrainProgram plan_fsdp(const LaunchRequest& request);

}  // namespace tprimat::suite
