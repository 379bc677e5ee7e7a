#include "published/framework_formulas.h"

#include <algorithm>

#include "base/check.h"
#include "spec/flop_breakdown.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace {

constexpr double k_forward = 2;  // FLOPs of a product per weight and token; three times that with the backward pass
constexpr double k_trained = 3 * k_forward;

// Everything but the attention: SwiGLU experts and heads.
struct Backbone {
  double hidden = 0, layers = 0, dense_layers = 0, dense_ffn = 0;
  double expert_ffn = 0, per_token = 0, shared_ffn = 0;
  double vocabulary = 0, predicting = 0;
  double blocks() const { return layers + predicting; }
};

// Routers are not counted; of a layer that predicts further tokens the norms of its streams are.
double backbone_weights(const Backbone& m) {
  const double sparse = m.blocks() - m.dense_layers;
  const double mlps =
      3 * m.hidden * (m.dense_layers * m.dense_ffn + sparse * (m.per_token * m.expert_ffn + m.shared_ffn));
  const double joined = m.predicting * (2 * m.hidden * m.hidden + 3 * m.hidden);
  return mlps + joined + (1 + m.predicting) * m.hidden * m.vocabulary;
}

// Which keys of a sequence a query needs is scored by an indexer: narrow heads against one narrow key.
struct Indexer {
  double heads = 0, head_dim = 0, chosen = 0;
};

// DeepSeek-V4: all heads share one key that is their value, too. Each layer sees a window of keys; some add keys that
// stand for 4 tokens, of which an indexer chooses, or for 128 tokens, all of them.
struct CompressedAttention {
  Backbone backbone;
  double heads = 0, head_dim = 0, query_rank = 0, output_rank = 0, output_groups = 0, window = 0;
  double fine_layers = 0, coarse_layers = 0;  // with keys for 4 tokens, for 128
  Indexer indexer;
};
constexpr double k_fine = 4, k_coarse = 128;

double projection_weights(const CompressedAttention& m) {
  const double width = m.heads * m.head_dim;
  const double query = m.query_rank * (m.backbone.hidden + width + 1);
  const double key = m.head_dim * (m.backbone.hidden + 1);
  return query + key + m.output_rank * (width + m.output_groups * m.backbone.hidden);
}

// Keys that a query meets times the width of all heads, twice: scores and values.
double core_weights(const CompressedAttention& m, double length) {
  const double width = m.heads * m.head_dim;
  const double fine = std::min(m.indexer.chosen, length / k_fine);
  const double fine_keys = fine * (1 - fine * k_fine / (2 * length));
  const double coarse_keys = length / k_coarse / 2;
  return 2 * width * (m.backbone.blocks() * m.window + m.fine_layers * fine_keys + m.coarse_layers * coarse_keys);
}

double compressor_weights(const CompressedAttention& m) {
  return 2 * m.backbone.hidden * m.head_dim * (2 * m.fine_layers + m.coarse_layers);
}

double indexer_weights(const CompressedAttention& m, double length) {
  const double width = m.indexer.heads * m.indexer.head_dim;
  const double products =
      4 * m.backbone.hidden * m.indexer.head_dim + m.query_rank * width + m.backbone.hidden * m.indexer.heads;
  return m.fine_layers * (products + width * length / k_fine);
}

double flops_of(const CompressedAttention& m, double length) {
  return k_trained * (backbone_weights(m.backbone) + m.backbone.blocks() * projection_weights(m) +
                      core_weights(m, length) + compressor_weights(m) + indexer_weights(m, length));
}

// Latent attention over the keys that an indexer chose (arXiv 2512.02556, equations 1 and 2). The products run in the
// latent space. Only some layers have an indexer of their own; a loss trains it against the scores of the attention.
struct IndexedAttention {
  Backbone backbone;
  double heads = 0, head_dim = 0, rope_head_dim = 0, value_head_dim = 0, query_rank = 0, key_value_rank = 0;
  Indexer indexer;
  double indexer_layers = 0;
};

double projection_weights(const IndexedAttention& m) {
  const double query = m.query_rank * (m.backbone.hidden + m.heads * (m.head_dim + m.rope_head_dim) + 1);
  const double key = m.key_value_rank * (m.backbone.hidden + m.heads * (m.head_dim + m.value_head_dim) + 1);
  return query + key + m.backbone.hidden * (m.rope_head_dim + m.heads * m.value_head_dim);
}

// The indexer scores all keys before a query; its gradient, and the scores that it learns from, are of the chosen keys
// alone. It passes no gradient on to its inputs: its products count twice the forward pass, not three times.
double indexer_flops(const IndexedAttention& m, double all_keys, double chosen_keys) {
  const double width = m.indexer.heads * m.indexer.head_dim;
  const double products =
      m.query_rank * width + m.backbone.hidden * m.indexer.head_dim + m.backbone.hidden * m.indexer.heads;
  const double score = width + m.indexer.heads;
  const double taught = chosen_keys * m.heads * (m.key_value_rank + m.rope_head_dim);
  return m.indexer_layers * k_forward * (2 * products + (all_keys + 2 * chosen_keys) * score + taught);
}

double flops_of(const IndexedAttention& m, double length) {
  const double all_keys = (length + 1) / 2, chosen = m.indexer.chosen;
  const double chosen_keys = length <= chosen ? all_keys : chosen - chosen * (chosen - 1) / (2 * length);
  const double core = chosen_keys * m.heads * (2 * m.key_value_rank + m.rope_head_dim);
  return k_trained * (backbone_weights(m.backbone) + m.backbone.blocks() * (projection_weights(m) + core)) +
         indexer_flops(m, all_keys, chosen_keys);
}

// AMD-AGI/Primus primus/configs/models/megatron/deepseek_v4_flash.yaml and deepseek_v4_base.yaml at fd1eeab.
constexpr CompressedAttention k_deepseek_v4_flash{.backbone = {.hidden = 4096,
                                                               .layers = 43,
                                                               .expert_ffn = 2048,
                                                               .per_token = 6,
                                                               .shared_ffn = 2048,
                                                               .vocabulary = 129280,
                                                               .predicting = 1},
                                                  .heads = 64,
                                                  .head_dim = 512,
                                                  .query_rank = 1024,
                                                  .output_rank = 1024,
                                                  .output_groups = 8,
                                                  .window = 128,
                                                  .fine_layers = 21,
                                                  .coarse_layers = 20,
                                                  .indexer = {.heads = 64, .head_dim = 128, .chosen = 512}};

// AMD-AGI/Primus primus/configs/models/megatron/glm5.yaml at fd1eeab; vocabulary and indexer from the public
// config.json of zai-org/GLM-5.2: the first three layers, each fourth after them and the one that predicts have an
// indexer.
constexpr IndexedAttention k_glm5_2{.backbone = {.hidden = 6144,
                                                 .layers = 78,
                                                 .dense_layers = 3,
                                                 .dense_ffn = 12288,
                                                 .expert_ffn = 2048,
                                                 .per_token = 8,
                                                 .shared_ffn = 2048,
                                                 .vocabulary = 154880,
                                                 .predicting = 1},
                                    .heads = 64,
                                    .head_dim = 192,
                                    .rope_head_dim = 64,
                                    .value_head_dim = 256,
                                    .query_rank = 2048,
                                    .key_value_rank = 512,
                                    .indexer = {.heads = 32, .head_dim = 128, .chosen = 2048},
                                    .indexer_layers = 22};

}  // namespace

std::optional<double> framework_flops(std::string_view model, int64_t layers, int64_t sequence_length) {
  CHECK(sequence_length > 0);
  const std::string name = fold_name(model.substr(0, 200));
  const auto count = [&](const auto& known) -> std::optional<double> {
    if (layers != 0 && static_cast<double>(layers) != known.backbone.layers) return std::nullopt;
    return flops_of(known, static_cast<double>(sequence_length));
  };
  if (name == "deepseekv4flash") return count(k_deepseek_v4_flash);
  if (name == "glm52") return count(k_glm5_2);
  return std::nullopt;
}

double megatron_flops(const ModelSpec& shape, int64_t sequence_length, int64_t tensor_parallel) {
  ModelSpec counted = shape;
  if (counted.mamba) counted.mamba->inner_width = 2 * counted.hidden_size;
  const FlopBreakdown breakdown = break_down(counted, {sequence_length, true, tensor_parallel});
  const int64_t hidden = shape.hidden_size;
  const int64_t joined = shape.mamba ? 2 * hidden * hidden : 0;
  double left_out = k_trained * static_cast<double>(shape.prediction_layers.value_or(0) *
                                                    ((shape.experts ? shape.experts->count : 0) * hidden + joined));
  if (const PartCost* router = breakdown.find(FlopPart::router)) left_out += router->total();
  return breakdown.total() - left_out;
}

}  // namespace tprimat::planner
