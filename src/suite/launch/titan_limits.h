#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// Refuses what torchtitan does not train of a model's shape, experts included, and how it splits them.
void add_titan_model_limits(Refusals& refusals, const LaunchRequest& request);

// What it does otherwise with experts and the positions of latent attention.
void add_titan_expert_deviations(std::vector<Deviation>& list, const TrainSpec& spec);

}  // namespace tprimat::suite
