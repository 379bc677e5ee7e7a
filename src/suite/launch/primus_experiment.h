#pragma once

#include <string>

#include "launch/launch_plan.h"
#include "text/json.h"

namespace tprimat::suite {

// The settings of a training for Primus' Megatron back end, under the names of Megatron-LM's arguments: the `overrides`
// of the module pre_trainer. They state everything, independent of the base.
Json list_primus_overrides(const LaunchRequest& request);

// The experiment file of Primus (EXP). It extends the model's `primus_config`, a path inside the checkout.
std::string write_primus_experiment(const LaunchRequest& request);

}  // namespace tprimat::suite
