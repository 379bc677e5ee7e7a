#include "planner/layer_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tprimat::planner {
namespace {

double number(int64_t value) { return static_cast<double>(value); }

// Elements of one micro-batch per unit of width.
double rows_of(const Workload& workload) {
  return number(workload.layout.micro_batch * workload.sequence_length) / number(workload.layout.context);
}

double sequence_split(const Layout& layout) { return layout.sequence_parallel ? number(layout.tensor) : 1; }

double matrices(const ModelSpec& model) { return model.mlp == MlpKind::swiglu ? 3 : 2; }

bool repeats(const Workload& workload, RecomputedModule module) {
  const std::vector<RecomputedModule>& all = workload.recomputed_modules;
  return workload.layout.recompute == Recompute::selective && std::find(all.begin(), all.end(), module) != all.end();
}

// Bytes in which a product keeps its input for the gradient of its weight: in the training's precision, with the scales
// of blocks (Transformer Engine). The inputs of frozen weights are not kept.
double input_bytes(const Workload& workload) {
  constexpr double k_fp4 = 0.5 + 1.0 / 16;
  if (workload.trains_adapters) return 0;
  if (workload.precision == PlanPrecision::fp4) return k_fp4;
  return workload.precision == PlanPrecision::fp8 ? 1 : k_half_bytes;
}

// Bytes per row that tensor parallelism splits only together with the sequence: two norms' inputs, the inputs of the
// first products of attention and MLP, and two masks; narrow products of latent attention, before and after their
// norms. Adapters (of queries, keys and values, and of the output) keep their inputs after dropout.
double whole_width_bytes(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const double input = input_bytes(workload), hidden = number(m.hidden_size);
  double bytes = hidden * (2 * k_half_bytes + (workload.family->dropout ? 2 : 0));
  if (!repeats(workload, RecomputedModule::norms)) bytes += 2 * hidden * input;
  if (workload.trains_adapters) bytes += 2 * hidden * k_half_bytes;
  if (!m.latent_attention) return bytes;
  const double ranks = number(m.latent_attention->query_rank + m.latent_attention->key_value_rank);
  return bytes + ranks * (k_half_bytes + input) + k_half_bytes * number(m.latent_attention->rope_head_dim);
}

// Queries, keys, values and the sum of values.
double attention_width(const ModelSpec& m) {
  if (m.latent_attention)
    return number(2 * m.num_attention_heads *
                  (m.head_dim + m.latent_attention->rope_head_dim + m.latent_attention->value_head_dim));
  return 2 * number(m.num_attention_heads * m.head_dim) + 2 * number(m.num_key_value_heads * m.head_dim);
}

// Inner width of the MLP that every token passes.
double common_inner(const ModelSpec& m, LayerKind kind) {
  return number(kind == LayerKind::dense ? m.ffn_hidden_size : m.experts->shared_ffn_hidden_size);
}

// Of an MLP per unit of its inner width: results of its first products, and the input of its last.
double inner_bytes(const Workload& workload) {
  const double result = workload.stores_narrow ? 1 : k_half_bytes;
  return (matrices(workload.shape) - 1) * result + input_bytes(workload);
}

// Heads' sum of values, which the last product of attention takes.
double sum_width(const ModelSpec& m) {
  return number(m.num_attention_heads * (m.latent_attention ? m.latent_attention->value_head_dim : m.head_dim));
}

// Queries, keys, values and their sum; the latter also as the next product takes it, where that is narrower; and what
// the norms of queries and keys take.
double attention_bytes(const Workload& workload) {
  constexpr double k_softmax_sum = 4;  // fused attention keeps one fp32 figure per row and head
  const ModelSpec& m = workload.shape;
  const double input = input_bytes(workload);
  double bytes = k_half_bytes * attention_width(m);
  if (m.latent_attention && repeats(workload, RecomputedModule::latent_projections))
    bytes = k_half_bytes * sum_width(m);
  if (input < k_half_bytes) bytes += input * sum_width(m);
  if (m.qk_norm) bytes += k_half_bytes * number((m.num_attention_heads + m.num_key_value_heads) * m.head_dim);
  return bytes + (workload.family->fused_attention ? k_softmax_sum * number(m.num_attention_heads) : 0);
}

// Attention and the products of that MLP. Split by tensor parallelism.
double split_width_bytes(const Workload& workload, LayerKind kind) {
  const bool none = kind == LayerKind::dense
                        ? repeats(workload, RecomputedModule::dense_mlp)
                        : repeats(workload, RecomputedModule::shared) || repeats(workload, RecomputedModule::experts);
  const double mlp = none ? 0 : inner_bytes(workload) * common_inner(workload.shape, kind);
  return attention_bytes(workload) + mlp;
}

// Softmax, its mask and what the mask leaves: 5 bytes per score. Not kept by fused attention, nor with selective
// recomputation.
double score_bytes(const Workload& workload) {
  if (workload.family->fused_attention || workload.layout.recompute == Recompute::selective) return 0;
  const double each = workload.family->dropout ? 5 : 2;
  return each * number(workload.shape.num_attention_heads * workload.sequence_length);
}

// Copies that a rank's experts take of each token on it.
double copies_per_token(const Workload& workload, double load) {
  return number(workload.shape.experts->per_token) * (load > 0 ? load : load_of_fullest_rank(workload));
}

// Of each copy of a token, on each of the ETP ranks that split its expert's inner width. torchtitan keeps its input
// before and after the exchange, its product with the router's weight in fp32, and each step of the activation that
// nothing compiles.
double copy_bytes(const Workload& workload) {
  constexpr double k_weight = 4;
  const Experts& experts = *workload.shape.experts;
  const double width = number(experts.latent_size.value_or(workload.shape.hidden_size));
  double input = input_bytes(workload) * width, inner = inner_bytes(workload);
  if (workload.family->operator_recompute) input += (k_half_bytes + 4) * width;
  if (workload.family->operator_recompute && !workload.compiled) inner += k_half_bytes;
  if (repeats(workload, RecomputedModule::expert_activation)) inner -= input_bytes(workload);
  return input + inner * number(experts.ffn_hidden_size) / number(workload.layout.expert_tensor) + k_weight;
}

// Of each token on the rank.
double routed_bytes(const Workload& workload, double load) {
  constexpr double k_router = 4 + 4 + 1;
  if (repeats(workload, RecomputedModule::experts)) return 0;
  const Experts& experts = *workload.shape.experts;
  return copies_per_token(workload, load) * number(workload.layout.expert_tensor) * copy_bytes(workload) +
         k_router * number(experts.count) + k_half_bytes * number(experts.latent_size.value_or(0));
}

// What torchtitan keeps per row when every second product is repeated: inputs of the norms, queries, values, the sum of
// values and the MLP's first product; and its last one, which no gradient needs, where nothing compiles the layer. FP8
// keeps the same. Of routed experts their inputs and the sum of their results, which ranks exchange.
double operator_kept_bytes(const Workload& workload, LayerKind kind, double load) {
  const ModelSpec& m = workload.shape;
  const double hidden = number(m.hidden_size);
  const double routed = kind == LayerKind::experts ? k_half_bytes * (copies_per_token(workload, load) + 1) * hidden : 0;
  const double values = m.latent_attention ? sum_width(m) : number(m.num_key_value_heads * m.head_dim);
  const double last = workload.compiled && kind == LayerKind::dense ? 0 : hidden;
  return k_half_bytes * (3 * hidden + last + values + common_inner(m, kind)) + routed;
}

// torchtitan keeps the inputs of the first products of attention and MLP as tensor-parallel ranks have gathered them;
// the sum over ranks and its gradient are whole for a while.
double gathered_bytes(const Workload& workload) {
  if (!workload.family->operator_recompute || workload.layout.tensor == 1) return 0;
  const double split = sequence_split(workload.layout);
  return 2 * input_bytes(workload) * number(workload.shape.hidden_size) * (1 - 1 / split);
}

// Of a layer that is not repeated as a whole.
double whole_layer_bytes(const Workload& workload, LayerKind kind, double load) {
  const Layout& layout = workload.layout;
  const double tensor = number(layout.tensor), split = sequence_split(layout);
  const double common = whole_width_bytes(workload) / split + gathered_bytes(workload) +
                        (split_width_bytes(workload, kind) + score_bytes(workload)) / tensor;
  return kind == LayerKind::dense ? common : common + routed_bytes(workload, load) / split;
}

double kept_bytes(const Workload& workload, LayerKind kind, double load) {
  const double split = sequence_split(workload.layout);
  if (workload.selects_operators()) return operator_kept_bytes(workload, kind, load) / split;
  if (workload.layout.recompute != Recompute::full) return whole_layer_bytes(workload, kind, load);
  const double input = k_half_bytes * number(workload.shape.hidden_size) / split;
  const double share = std::min(1.0, workload.recomputed_share);
  return share == 1 ? input : share * input + (1 - share) * whole_layer_bytes(workload, kind, load);
}

struct AttentionWeights {
  double whole = 0, split = 0;  // over tensor-parallel ranks
};
AttentionWeights attention_weights(const ModelSpec& m) {
  const double hidden = number(m.hidden_size), heads = number(m.num_attention_heads);
  if (!m.latent_attention) return {0, hidden * attention_width(m)};
  const LatentAttention& latent = *m.latent_attention;
  const double queries = heads * number(m.head_dim + latent.rope_head_dim), rank = number(latent.key_value_rank);
  const double query_input = latent.query_rank > 0 ? number(latent.query_rank) : hidden;
  return {hidden * number(latent.query_rank + latent.key_value_rank + latent.rope_head_dim),
          query_input * queries + rank * heads * number(m.head_dim + latent.value_head_dim) +
              heads * number(latent.value_head_dim) * hidden};
}

// A layer of the kind of the last one, and a product that joins two streams.
LayerKind prediction_kind(const ModelSpec& m) { return m.experts ? LayerKind::experts : LayerKind::dense; }

void add(RankWeights& to, const RankWeights& one, double times) {
  to.common += times * one.common;
  to.experts += times * one.experts;
}

void add_prediction(RankWeights& weights, const Workload& workload, int64_t layers) {
  if (layers == 0) return;
  const ModelSpec& m = workload.shape;
  const double hidden = number(m.hidden_size), tensor = number(workload.layout.tensor);
  RankWeights block = layer_rank_weights(workload, prediction_kind(m));
  block.common += 2 * hidden * hidden / tensor;
  add(weights, block, m.shared_prediction.value_or(false) ? 1 : number(layers));
  if (workload.layout.pipeline > 1) weights.common += number(m.vocab_size) * hidden / tensor;  // embeds again
}

// Tables of the vocabulary.
double stage_tables(const Workload& workload, int64_t stage) {
  const bool first = stage == 0, last = stage == workload.layout.pipeline - 1;
  if (first && last && workload.shape.tied_embeddings) return 1;
  return (first ? 1 : 0) + (last ? 1 : 0);
}

int64_t layers_before(const Workload& workload, int64_t place) {
  const Layout& layout = workload.layout;
  const std::vector<int64_t>& cut = workload.layers_of_places;
  if (!cut.empty()) return std::accumulate(cut.begin(), cut.begin() + place, int64_t{0});
  if (workload.family->balances_ends) return workload.balanced_layers(place);
  if (workload.family->fills_stages && !layout.ends_as_layers) return workload.filled_layers(place);
  return split_layers(workload.shape.num_layers, layout.pipeline * layout.chunks, layout.ends_as_layers, place).first;
}

int64_t expert_layers_before(const Experts& experts, int64_t layer) {
  return layer <= experts.first_dense_layers ? 0 : experts.layers(layer);
}

// Layers of each chunk of a stage, in order.
template <class Visit>
void visit_chunks(const Workload& workload, int64_t stage, const Visit& visit) {
  const Layout& layout = workload.layout;
  const ModelSpec& m = workload.shape;
  const auto kinds = [&](int64_t chunk, int64_t first, int64_t count) {
    const int64_t experts =
        m.experts ? expert_layers_before(*m.experts, first + count) - expert_layers_before(*m.experts, first) : 0;
    const bool predicts = chunk * layout.pipeline + stage == workload.prediction_place();
    visit(chunk, StageLayers{count - experts, experts, predicts ? m.prediction_layers.value_or(0) : 0});
  };
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    const int64_t place = chunk * layout.pipeline + stage;
    kinds(chunk, m.experts ? layers_before(workload, place) : 0, workload.chunk_layers(place));
  }
}

// Micro-batches whose activations a stage keeps: under 1F1B as many as stages follow, itself included; its interleaved
// form begins 2 (p - s - 1) + (v - 1) p + 1 chunks before the first one ends, which is L (1 + (p - 1) / (p v)) layers
// on the first stage (arXiv 2205.05198, section 4.2.3). It takes p micro-batches through each chunk in turn.
double begun_passes(const Workload& workload, int64_t stage) {
  const Layout& layout = workload.layout;
  const int64_t behind = layout.delays_weights ? layout.pipeline - 1 : layout.pipeline - stage - 1;
  const int64_t begun = layout.chunks == 1 ? behind + 1 : 2 * behind + (layout.chunks - 1) * layout.pipeline + 1;
  return std::min(number(begun), workload.micro_batches() * number(layout.chunks));
}

double passes_of_chunk(const Workload& workload, double begun, int64_t chunk) {
  const double stages = number(workload.layout.pipeline), chunks = number(workload.layout.chunks);
  const double all = workload.micro_batches();
  if (chunks == 1 || begun >= all * chunks) return begun / chunks;
  const double rounds = std::floor(begun / (stages * chunks));
  const double further = std::clamp(begun - rounds * stages * chunks - number(chunk) * stages, 0.0, stages);
  return std::min(all, stages * rounds + further);
}

}  // namespace

double load_of_fullest_rank(const Workload& workload) {
  const Experts& experts = *workload.shape.experts;
  double load = std::min(std::max(1.0, workload.expert_load), number(std::max<int64_t>(1, workload.layout.expert)));
  if (experts.capacity_factor) load = std::min(load, *experts.capacity_factor);
  return load;
}

double layer_activation_bytes(const Workload& workload, LayerKind kind, double load) {
  return rows_of(workload) * kept_bytes(workload, kind, load);
}

double whole_layer_activation_bytes(const Workload& workload, LayerKind kind, double load) {
  const bool gathers = workload.family->operator_recompute && workload.layout.tensor > 1;
  const double sums = gathers ? 2 * k_half_bytes * number(workload.shape.hidden_size) : 0;
  return rows_of(workload) * (whole_layer_bytes(workload, kind, load) + sums);
}

double layer_weights(const ModelSpec& m) {
  const AttentionWeights attention = attention_weights(m);
  const double hidden = number(m.hidden_size);
  return attention.whole + attention.split + matrices(m) * hidden * number(m.ffn_hidden_size) + 2 * hidden;
}

RankWeights layer_rank_weights(const Workload& workload, LayerKind kind) {
  const ModelSpec& m = workload.shape;
  const AttentionWeights attention = attention_weights(m);
  const double hidden = number(m.hidden_size), tensor = number(workload.layout.tensor);
  const double mlp = matrices(m) * hidden * common_inner(m, kind);
  RankWeights weights{attention.whole + (attention.split + mlp + 2 * hidden) / tensor, 0};
  if (kind == LayerKind::dense) return weights;
  const Experts& experts = *m.experts;
  const double latent = number(experts.latent_size.value_or(0)), width = latent > 0 ? latent : hidden;
  weights.common += hidden * (number(experts.count) + 2 * latent);
  weights.experts = number(experts.count) * matrices(m) * width * number(experts.ffn_hidden_size) /
                    number(workload.layout.expert * workload.layout.expert_tensor);
  return weights;
}

StageLayers layers_of_stage(const Workload& workload, int64_t stage) {
  StageLayers all;
  if (!workload.shape.experts) {
    const bool last = stage == workload.layout.pipeline - 1;
    return {workload.stage_layers(stage), 0, last ? workload.shape.prediction_layers.value_or(0) : 0};
  }
  visit_chunks(workload, stage, [&](int64_t, const StageLayers& chunk) {
    all.dense += chunk.dense, all.experts += chunk.experts, all.prediction += chunk.prediction;
  });
  return all;
}

RankWeights stage_weights(const Workload& workload, int64_t stage) {
  const ModelSpec& m = workload.shape;
  const StageLayers layers = layers_of_stage(workload, stage);
  RankWeights weights;
  weights.common =
      stage_tables(workload, stage) * number(m.vocab_size) * number(m.hidden_size) / number(workload.layout.tensor);
  add(weights, layer_rank_weights(workload, LayerKind::dense), number(layers.dense));
  if (layers.experts > 0) add(weights, layer_rank_weights(workload, LayerKind::experts), number(layers.experts));
  add_prediction(weights, workload, layers.prediction);
  return weights;
}

double heaviest_rank_weights(const Workload& workload) {
  double most = 0;
  workload.visit_stages([&](int64_t stage) { most = std::max(most, stage_weights(workload, stage).total()); });
  return most;
}

double stage_activation_bytes(const Workload& workload, int64_t stage, double load) {
  const ModelSpec& m = workload.shape;
  const double dense = layer_activation_bytes(workload, LayerKind::dense);
  const double experts = m.experts ? layer_activation_bytes(workload, LayerKind::experts, load) : 0;
  // The two streams, and both with their norms.
  const double joined = 4 * k_half_bytes * number(m.hidden_size) * rows_of(workload) / sequence_split(workload.layout);
  const double prediction = joined + (m.experts ? experts : dense), begun = begun_passes(workload, stage);
  double bytes = 0;
  visit_chunks(workload, stage, [&](int64_t chunk, const StageLayers& layers) {
    bytes += passes_of_chunk(workload, begun, chunk) *
             (number(layers.dense) * dense + number(layers.experts) * experts + number(layers.prediction) * prediction);
  });
  return bytes;
}

}  // namespace tprimat::planner
