#include "planner/weights.h"

namespace tprimat {

double layer_weights(const ModelSpec& m) {
  const auto hidden = static_cast<double>(m.hidden_size), inner = static_cast<double>(m.ffn_hidden_size);
  const auto queries = static_cast<double>(m.num_attention_heads * m.head_dim);
  const auto keys = static_cast<double>(m.num_key_value_heads * m.head_dim);
  const double matrices = m.mlp == MlpKind::swiglu ? 3 : 2;
  return hidden * (2 * queries + 2 * keys) + matrices * hidden * inner + 2 * hidden;
}

double heaviest_rank_weights(const Workload& workload) {
  const ModelSpec& m = workload.shape.model;
  const auto stages = static_cast<double>(workload.layout.pipeline);
  const double layers = static_cast<double>(m.num_layers) / stages * layer_weights(m);
  const double tables = stages > 1 || m.tied_embeddings ? 1 : 2;
  const double embedding = tables * static_cast<double>(m.vocab_size) * static_cast<double>(m.hidden_size);
  return (layers + embedding) / static_cast<double>(workload.layout.tensor);
}

}  // namespace tprimat
