#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/model_spec.h"

namespace tprimat::planner {

// Model FLOPs per token, forward and backward, of models whose attention no ModelSpec states: compressed keys
// (DeepSeek-V4-Flash) and keys that an indexer chooses (GLM-5.2). Counted as the framework that published their figures
// counts them: Megatron-Bridge, src/megatron/bridge/training/utils/flop_utils.py at 067f987, with the layers that
// predict further tokens. Nothing for other models, nor where `layers`, unless 0, are not the model's.
std::optional<double> framework_flops(std::string_view model, int64_t layers, int64_t sequence_length);

// Model FLOPs per token, forward and backward, by Megatron-LM's num_floating_point_operations: causal attention, the
// vocabulary padded for the tensor-parallel ranks (0: not at all), and no routers. Of a hybrid it takes a mixer to be
// twice as wide as the hidden size, and counts no product that joins the streams of a layer that predicts further
// tokens (its hybrid_flops).
double megatron_flops(const ModelSpec& shape, int64_t sequence_length, int64_t tensor_parallel);

}  // namespace tprimat::planner
