#pragma once

#include <cstdint>

#include "spec/model_spec.h"

namespace tprimat {

// Parameters of one layer of each kind. `weights` multiply each token; extras (biases, norms within a part, sinks) do
// not count as FLOPs.
struct LayerWeights {
  int64_t attention = 0, attention_extras = 0;
  int64_t mixer = 0, mixer_extras = 0;    // a Mamba-2 mixer
  int64_t mlp = 0, mlp_extras = 0;        // a dense MLP
  int64_t expert = 0, expert_extras = 0;  // one routed expert
  int64_t router = 0, router_extras = 0;
  // What every token passes in a layer of experts beside its router: shared experts, their gate, and the two products
  // to and from the latent width.
  int64_t shared = 0, shared_extras = 0;
  int64_t norms = 0;           // of a layer
  int64_t attention_core = 0;  // width of queries against keys, plus that of values, of all heads
};
LayerWeights weights_of_layer(const ModelSpec& model);

// Of one block that predicts further tokens: a block of the last kind (of a hybrid: attention and experts) and a
// product that joins two streams. It reads the model's own head. `active`: what one token passes.
struct PredictionBlock {
  int64_t parameters = 0, active_parameters = 0;
  int64_t weights = 0;  // that multiply each token, without the head
};
PredictionBlock prediction_block(const ModelSpec& model);

}  // namespace tprimat
