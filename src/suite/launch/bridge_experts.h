#pragma once

#include "launch/frameworks.h"
#include "text/json.h"

// What Megatron-Bridge takes of sparse models, under the names of its configuration's section `model`.
namespace tprimat::suite {

// Adds the settings of experts, of multi-head latent attention, of prediction layers and of attention sinks, where the
// model has them.
void add_bridge_experts(const TrainSpec& spec, Json& model);

// Refuses what Megatron Core trains and Megatron-Bridge has no setting for. The older one in Primus has fewer.
void add_bridge_limits(Refusals& refusals, const TrainSpec& spec, bool in_primus);

}  // namespace tprimat::suite
