#pragma once

#include <cstdint>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat::planner {

// What the parts of a model cost in a step, in FLOPs per token where a layer's exchanges and memory traffic count too.
struct PartWeights {
  double dense = 0;    // a layer with a dense MLP
  double experts = 0;  // a layer with experts
  double first = 0;    // what the first chunk has besides layers: the embedding
  double last = 0;     // and the last: layers that predict further tokens, head and loss
};
PartWeights weigh_parts(const ModelSpec& model, int64_t sequence_length);

// Layers of each of the stages x chunks places, place = chunk x stages + stage, so that the stage that has most to do
// has as little as possible, and then all places are as alike as they can be. The same model is always cut the same
// way.
std::vector<int64_t> cut_evenly(const ModelSpec& model, int64_t sequence_length, int64_t stages, int64_t chunks);

}  // namespace tprimat::planner
