#pragma once

#include <string>

#include "launch/launch_plan.h"
#include "text/json.h"

namespace tprimat::suite {

// The checkout; where none is stated, that of AMD's containers.
std::string place_of_primus(const Checkout& checkout);

// What a training asks of Primus' Megatron back end, under the names of Megatron-LM's arguments: the `overrides` of the
// module pre_trainer. Everything that the experiment states, whatever the base has.
Json list_primus_overrides(const LaunchRequest& request);

// The experiment file of Primus (EXP). The model's `primus_config`, a path inside the checkout, is what it extends.
std::string write_primus_experiment(const LaunchRequest& request);

}  // namespace tprimat::suite
