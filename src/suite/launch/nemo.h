#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// NVIDIA NeMo as it is since 2025: Megatron-Bridge, driven by frameworks/train_nemo.py under torchrun. The Python that
// has the package megatron-bridge: `paths.nemo.installation`, the environment of `frameworks/setup.sh nemo`, or the
// python3 in PATH (NVIDIA's NeMo container), in this order.
std::optional<Installation> find_nemo(const Checkout& checkout);
TrainProgram plan_nemo(const LaunchRequest& request);

}  // namespace tprimat::suite
