#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat::engine {

// A weight of the whole model, not cut over ranks, row by row. Vectors are rows×1.
struct NamedShape {
  std::string name;
  int64_t rows = 0, cols = 1;
  int64_t count() const { return rows * cols; }
  bool operator==(const NamedShape&) const = default;
};

// All weights of a dense model, in the order of the forward pass. A linear layer has outputs×inputs (y = x·Wᵀ).
//   embedding.weight                       vocab×hidden
//   positions.weight                       max_position_embeddings×hidden; learned positions only
//   layers.N.attention_norm.weight, .bias  .bias of every norm with LayerNorm only
//   layers.N.attention.qkv.weight, .bias   rows: all query heads, all key heads, all value heads
//   layers.N.attention.query_norm.weight, key_norm.weight    head_dim; with qk_norm
//   layers.N.attention.out.weight, .bias
//   layers.N.mlp_norm.weight, .bias
//   layers.N.mlp.gate_up.weight, .bias     SwiGLU; rows: gate, then up
//   layers.N.mlp.up.weight, .bias          GELU
//   layers.N.mlp.down.weight, .bias
//   final_norm.weight, .bias
//   head.weight                            vocab×hidden; absent where it is the embedding
// CHECKs that the model is dense (no experts).
std::vector<NamedShape> whole_weights(const ModelSpec& model);

}  // namespace tprimat::engine
