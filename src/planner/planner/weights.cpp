#include "planner/weights.h"

#include <algorithm>

namespace tprimat::planner {

double layer_weights(const ModelSpec& m) {
  const auto hidden = static_cast<double>(m.hidden_size), inner = static_cast<double>(m.ffn_hidden_size);
  const auto queries = static_cast<double>(m.num_attention_heads * m.head_dim);
  const auto keys = static_cast<double>(m.num_key_value_heads * m.head_dim);
  const double matrices = m.mlp == MlpKind::swiglu ? 3 : 2;
  return hidden * (2 * queries + 2 * keys) + matrices * hidden * inner + 2 * hidden;
}

double stage_weights(const Workload& workload, int64_t stage) {
  const ModelSpec& m = workload.shape.model;
  const bool first = stage == 0, last = stage == workload.layout.pipeline - 1;
  double tables = (first ? 1 : 0) + (last ? 1 : 0);
  if (first && last && m.tied_embeddings) tables = 1;
  const double ends = tables * static_cast<double>(m.vocab_size) * static_cast<double>(m.hidden_size);
  const double layers = static_cast<double>(workload.stage_layers(stage)) * layer_weights(m);
  return (layers + ends) / static_cast<double>(workload.layout.tensor);
}

double heaviest_rank_weights(const Workload& workload) {
  double most = 0;
  workload.visit_stages([&](int64_t stage) { most = std::max(most, stage_weights(workload, stage)); });
  return most;
}

}  // namespace tprimat::planner
