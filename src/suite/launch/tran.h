#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// Hugging Face Transformers: its Trainer, driven by frameworks/train_tran.py; several ranks under torchrun.
std::optional<Installation> find_tran(const Checkout&);
TrainProgram plan_tran(const LaunchRequest& request);

}  // namespace tprimat::suite
