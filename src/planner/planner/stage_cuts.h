#pragma once

#include <cstdint>
#include <vector>

#include "planner/step_time.h"

namespace tprimat::planner {

// Seconds of the parts of a model.
struct PartWeights {
  double dense = 0;    // a layer with a dense MLP
  double experts = 0;  // a layer with experts
  double first = 0;    // what the first chunk has besides layers: the embedding
  double last = 0;     // and the last: layers that predict further tokens, head and loss
};

// As the planner times one sequence without tensor and context parallelism and without recomputation, with experts
// shared by the GPUs that fast links join. One answer for all layouts of a training, so that a search cuts the layers
// for each PP and VP once.
PartWeights weigh_parts(Workload workload, const Machine& machine, const Rates& rates);

// Layers of each of the stages x chunks places, place = chunk x stages + stage, so that the stage that has most to do
// has as little as possible, and then all places are as alike as they can be. The same weights are always cut the same
// way.
std::vector<int64_t> cut_evenly(const ModelSpec& model, const PartWeights& weights, int64_t stages, int64_t chunks);

}  // namespace tprimat::planner
