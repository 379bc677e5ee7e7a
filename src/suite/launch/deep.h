#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// DeepSpeed's engine with ZeRO-0 to 3, driven by frameworks/train_deep.py under torchrun.
std::optional<Installation> find_deep(const Checkout&);
TrainProgram plan_deep(const LaunchRequest& request);

}  // namespace tprimat::suite
