#include "planner/step_time.h"

#include "planner/expert_time.h"

#include <algorithm>
#include <cmath>

namespace tprimat::planner {
namespace {

struct Dimensions {
  double tokens, hidden, inner, heads_width, kv_width, tensor;
};

// Inner width of the MLP that every token passes.
double common_inner(const ModelSpec& m, LayerKind kind) {
  return static_cast<double>(kind == LayerKind::dense ? m.ffn_hidden_size : m.experts->shared_ffn_hidden_size);
}

Dimensions dimensions_of(const Workload& workload, LayerKind kind) {
  const ModelSpec& m = workload.shape;
  const Layout& layout = workload.layout;
  Dimensions d{};
  d.tokens = static_cast<double>(layout.micro_batch * workload.sequence_length) / static_cast<double>(layout.context);
  d.hidden = static_cast<double>(m.hidden_size);
  d.tensor = static_cast<double>(layout.tensor);
  d.inner = common_inner(m, kind) / d.tensor;
  d.heads_width = static_cast<double>(m.num_attention_heads * m.head_dim) / d.tensor;
  d.kv_width = static_cast<double>(m.num_key_value_heads * m.head_dim) / d.tensor;
  return d;
}

double fill_tiles(double extent) {
  constexpr double k_tile = 128;
  return std::ceil(extent / k_tile) * k_tile / extent;
}

// A dimension that is no multiple of 64 elements keeps the tensor cores waiting; one that is none of 8, twice.
double alignment(double extent, double misaligned) {
  if (std::fmod(extent, 64) == 0) return 1;
  return std::fmod(extent, 8) == 0 ? misaligned : misaligned * misaligned;
}

// Products that project to queries, keys and values and back; the narrow ones of latent attention lie whole on every
// tensor-parallel rank, which each take their part of the sequence.
template <class Linear>
Phases time_projections(const Workload& workload, const Dimensions& d, const Linear& linear) {
  const ModelSpec& m = workload.shape;
  if (!m.latent_attention)
    return linear(d.tokens, d.heads_width + 2 * d.kv_width, d.hidden) + linear(d.tokens, d.hidden, d.heads_width);
  const LatentAttention& latent = *m.latent_attention;
  const double heads = static_cast<double>(m.num_attention_heads) / d.tensor;
  const auto rank = static_cast<double>(latent.key_value_rank), query_rank = static_cast<double>(latent.query_rank);
  const auto rotary = static_cast<double>(latent.rope_head_dim), values = static_cast<double>(latent.value_head_dim);
  const double plain = static_cast<double>(m.head_dim), queries = heads * (plain + rotary);
  const double rows = d.tokens / (workload.layout.sequence_parallel ? d.tensor : 1);
  Phases sum = linear(rows, rank + rotary, d.hidden) + linear(d.tokens, heads * (plain + values), rank) +
               linear(d.tokens, d.hidden, heads * values);
  if (query_rank <= 0) return sum + linear(d.tokens, queries, d.hidden);
  return sum + linear(rows, query_rank, d.hidden) + linear(d.tokens, queries, query_rank);
}

Phases time_products(const Workload& workload, const Dimensions& d, const Rates& r) {
  const double gates = workload.shape.mlp == MlpKind::swiglu ? 2 : 1;
  const auto linear = [&](double rows, double out, double in) { return time_linear(workload, rows, out, in, r.low()); };
  const Phases attention = time_projections(workload, d, linear);
  if (d.inner <= 0) return attention;
  return attention + linear(d.tokens, gates * d.inner, d.hidden) + linear(d.tokens, d.hidden, d.inner);
}

// Keys that a query sees of a document of so many tokens, on average.
double causal_keys(double length, double window) {
  return window >= length ? length / 2 : window * (length - window / 2) / length;
}

// Keys that a query sees on average over the layers; all of them where the core is computed without regard to the mask.
double seen_keys(const Workload& workload) {
  const ModelSpec& m = workload.shape;
  const auto whole = static_cast<double>(workload.sequence_length);
  if (!workload.family->fused_attention) return whole;
  const double length = workload.document_length > 0 ? std::min(whole, workload.document_length) : whole;
  const double full = causal_keys(length, length);
  if (!m.sliding_window) return full;
  const double share = static_cast<double>(m.full_attention_layers.value_or(0)) / static_cast<double>(m.num_layers);
  return share * full + (1 - share) * causal_keys(length, static_cast<double>(*m.sliding_window));
}

// FLOPs of both products over the pairs of query and key, per pair: 2 · (width of a query + width of a value), of all
// heads.
double pair_flops(const Workload& workload, const Dimensions& d) {
  const ModelSpec& m = workload.shape;
  if (!m.latent_attention) return 4 * d.heads_width;
  const auto width =
      static_cast<double>(m.head_dim + m.latent_attention->rope_head_dim + m.latent_attention->value_head_dim);
  return 2 * static_cast<double>(m.num_attention_heads) / d.tensor * width;
}

// Exponents cost the same for each score, however narrow the heads are (arXiv 2407.08608, section 3.2 and figure 5).
// Relative to heads of 128, as wide as most.
double narrow_heads(const ModelSpec& m, const Rates& r) {
  constexpr double k_usual = 128;
  if (m.latent_attention) return 1;
  return (1 + r.attention_width / static_cast<double>(m.head_dim)) / (1 + r.attention_width / k_usual);
}

Phases time_fused_attention(const Workload& workload, const Dimensions& d, const Rates& r) {
  constexpr double k_products = 2.5;  // five products in place of two (arXiv 2205.14135)
  const double k_backward = k_products * r.attention_backward;
  const double slow =
      (1 + r.attention_start / static_cast<double>(workload.sequence_length)) * narrow_heads(workload.shape, r);
  const double rate = r.attention * (workload.shape.latent_attention ? r.latent : 1);
  const double forward = d.tokens * seen_keys(workload) * pair_flops(workload, d) / rate * slow;
  return {forward, k_backward * forward};
}

Phases time_unfused_attention(const Workload& workload, const Dimensions& d, const Rates& r) {
  const ModelSpec& m = workload.shape;
  const double scores = d.tokens * static_cast<double>(workload.sequence_length * m.num_attention_heads) / d.tensor;
  const double products = 4 * d.tokens * seen_keys(workload) * d.heads_width /
                          (r.attention * (m.head_dim % 8 == 0 ? 1 : r.misaligned_head));
  const double moved = scores * r.score_bytes / r.memory;
  constexpr double k_backward_moved = 1.2;
  return {products + moved, 2 * products + k_backward_moved * moved};
}

Phases time_elementwise(const Workload& workload, const Dimensions& d, const Rates& r) {
  const bool fused = workload.family->fused_elementwise;
  const double gated = workload.shape.mlp == MlpKind::swiglu ? 3 : 2;
  const double split = workload.layout.sequence_parallel ? d.tensor : 1;
  const double forward =
      k_half_bytes * d.tokens * (r.hidden_bytes * d.hidden / split + gated * d.inner * r.inner_bytes);
  Phases phases = Phases{forward, (fused ? 2 : 1.5) * forward} * (1 / r.memory);
  if (workload.precision != PlanPrecision::fp8 && workload.precision != PlanPrecision::fp4) return phases;
  const double narrow = 2 * d.hidden + d.inner;
  const double cast = d.tokens * r.cast_bytes / r.memory;
  return phases + Phases{cast * (narrow + d.heads_width + 2 * d.kv_width), 2 * cast * narrow};
}

// Two all-reduces each way, or as many reduce-scatters and all-gathers (arXiv 1909.08053, 2205.05198).
Phases time_tensor(const Workload& workload, const Machine& machine, const Dimensions& d, const Rates& r) {
  if (d.tensor <= 1) return {};
  const bool near = workload.layout.tensor <= machine.gpus_per_domain;
  const double volume = (k_half_bytes + gathered_bytes(workload)) * d.tokens * d.hidden * (d.tensor - 1) / d.tensor;
  const double each =
      volume / (near ? r.link_among(machine, workload.layout.tensor) : r.network) * (1 - r.tensor_overlap) +
      2 * std::log2(d.tensor) * r.link_latency;
  return {2 * each, 2 * each};
}

// Keys and values of the other ranks arrive while attention computes (ring attention, arXiv 2310.01889).
Phases time_context(const Workload& workload, const Machine& machine, const Dimensions& d, const Rates& r,
                    const Phases& attention) {
  const auto ranks = static_cast<double>(workload.layout.context);
  if (ranks <= 1) return {};
  constexpr double k_hidden_behind = 0.7;
  const bool near = workload.layout.tensor * workload.layout.context <= machine.gpus_per_domain;
  const double sent = 2 * k_half_bytes * d.tokens * d.kv_width * (ranks - 1) / (near ? r.link : r.network);
  const double felt = std::max(0.0, sent - k_hidden_behind * attention.forward);
  const double cost = r.context_cost * std::log2(ranks);
  return {felt + cost * attention.forward, 2 * felt + cost * attention.backward};
}

double time_repeated(const Workload& workload, const LayerTime& layer) {
  switch (workload.layout.recompute) {
    case Recompute::none: return 0;
    case Recompute::full: return workload.recomputed_share * layer.total().forward;
    case Recompute::selective: break;
  }
  if (!workload.recomputed_modules.empty()) return workload.recomputed_share * layer.products.forward;
  if (workload.selects_operators()) return workload.recomputed_share * layer.products.forward / 2;
  return workload.family->fused_attention ? 0 : layer.attention.forward;
}

}  // namespace

double gathered_bytes(const Workload& workload) {
  const bool narrow = workload.family->narrow_gathers && workload.precision == PlanPrecision::fp8 &&
                      !workload.scaled_by_row && !workload.scaled_by_block;
  return narrow ? k_half_bytes / 2 : k_half_bytes;
}

Phases LayerTime::total() const { return products + attention + elementwise + tensor + context + experts; }

double time_product(double rows, double columns, double depth, const ProductRate& rate) {
  const double reached = rate.flops_per_second / (1 + rate.saturation * (1 / rows + 1 / columns + 1 / depth)) *
                         alignment(columns, rate.misaligned) * alignment(depth, rate.misaligned) *
                         alignment(rows, rate.misaligned);
  return 2 * rows * columns * depth * fill_tiles(rows) * fill_tiles(columns) / reached;
}

// Forward once; backward with respect to inputs, and to weights unless they are frozen.
Phases time_linear(const Workload& workload, double rows, double out, double in, const ProductRate& rate) {
  Phases both{time_product(rows, out, in, rate), time_product(rows, in, out, rate)};
  if (!workload.trains_adapters) both.backward += time_product(out, in, rows, rate);
  return both;
}

LayerTime time_layer(const Workload& workload, const Machine& machine, const Rates& rates, LayerKind kind) {
  const Dimensions d = dimensions_of(workload, kind);
  LayerTime layer;
  layer.products = time_products(workload, d, rates);
  layer.attention = workload.family->fused_attention ? time_fused_attention(workload, d, rates)
                                                     : time_unfused_attention(workload, d, rates);
  layer.elementwise = time_elementwise(workload, d, rates);
  layer.tensor = time_tensor(workload, machine, d, rates);
  layer.context = time_context(workload, machine, d, rates, layer.attention);
  if (workload.trains_adapters) layer.products = layer.products * rates.adapters;
  if (kind == LayerKind::experts) add_experts(layer, workload, machine, rates);
  layer.elementwise = layer.elementwise + Phases{rates.layer_overhead, 2 * rates.layer_overhead};
  const Phases total = layer.total();
  layer.elementwise.forward += std::max(0.0, rates.layer_start - total.forward);
  layer.elementwise.backward += std::max(0.0, 2 * rates.layer_start - total.backward);
  layer.repeated = time_repeated(workload, layer);
  return layer;
}

EndsTime time_ends(const Workload& workload, const Rates& r) {
  constexpr double k_logit_bytes = 14;  // logits written, their maximum and sum taken, gradient written
  // Written in 16 bits and read in fp32, maximum, difference, exponent, sum, quotient and gradient each by itself
  // (megatron/core/tensor_parallel/cross_entropy.py)
  constexpr double k_plain_logit_bytes = 54;
  constexpr double k_embedding_bytes = 12;  // rows read and written, and their gradients
  const Dimensions d = dimensions_of(workload, LayerKind::dense);
  const double columns = static_cast<double>(workload.shape.vocab_size) / d.tensor;
  EndsTime ends;
  ends.head = time_linear(workload, d.tokens, columns, d.hidden, {r.product_16, r.saturation_16, r.misaligned});
  ends.head.backward += d.tokens * columns * (workload.plain_loss ? k_plain_logit_bytes : k_logit_bytes) / r.memory;
  ends.embedding.backward = d.tokens * d.hidden * k_embedding_bytes / r.memory;
  ends.prediction = ends.head + time_linear(workload, d.tokens, d.hidden / d.tensor, 2 * d.hidden, r.low());
  return ends;
}

}  // namespace tprimat::planner
