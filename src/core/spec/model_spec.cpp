#include "spec/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "spec/layer_weights.h"

namespace tprimat {
namespace {

// Far above any model, and small enough that no product of three of them overflows.
constexpr int64_t k_max_dimension = int64_t{1} << 24;
constexpr double k_max_parameters = 1e17;

void check_dimension(Findings& findings, std::string_view key, int64_t value) {
  findings.require(value >= 1 && value <= k_max_dimension,
                   fmt::format("{} must be between 1 and {}, got {}", key, k_max_dimension, value));
}

void check_dimensions(Findings& findings, const ModelSpec& model) {
  check_dimension(findings, "num_layers", model.num_layers);
  check_dimension(findings, "hidden_size", model.hidden_size);
  check_dimension(findings, "ffn_hidden_size", model.ffn_hidden_size);
  check_dimension(findings, "num_attention_heads", model.num_attention_heads);
  check_dimension(findings, "num_key_value_heads", model.num_key_value_heads);
  check_dimension(findings, "head_dim", model.head_dim);
  check_dimension(findings, "vocab_size", model.vocab_size);
  check_dimension(findings, "max_position_embeddings", model.max_position_embeddings);
  if (model.sliding_window) check_dimension(findings, "sliding_window", *model.sliding_window);
}

void check_router(Findings& findings, const Experts& experts) {
  findings.require(experts.per_token >= 1 && experts.per_token <= experts.count,
                   fmt::format("experts.per_token must be between 1 and experts.count {}, got {}", experts.count,
                               experts.per_token));
  findings.require(experts.groups >= 1 && experts.count % experts.groups == 0,
                   fmt::format("experts.count {} cannot be divided into {} groups", experts.count, experts.groups),
                   "each group has the same number of experts");
  findings.require(experts.groups_per_token >= 1 && experts.groups_per_token <= experts.groups,
                   fmt::format("experts.groups_per_token must be between 1 and experts.groups {}, got {}",
                               experts.groups, experts.groups_per_token));
  if (!findings.empty()) return;
  findings.require(experts.per_token <= experts.count / experts.groups * experts.groups_per_token,
                   fmt::format("experts.per_token {} is more than the {} experts of {} groups", experts.per_token,
                               experts.count / experts.groups * experts.groups_per_token, experts.groups_per_token));
  findings.require(std::isfinite(experts.weight_scale) && experts.weight_scale > 0,
                   fmt::format("experts.weight_scale must be above 0, got {}", experts.weight_scale));
  for (const auto& [key, value] : {std::pair{"aux_loss_coefficient", experts.aux_loss_coefficient},
                                   std::pair{"z_loss_coefficient", experts.z_loss_coefficient}})
    findings.require(value >= 0 && std::isfinite(value),
                     fmt::format("experts.{} must be 0 or above, got {}", key, value));
  if (experts.capacity_factor)
    findings.require(*experts.capacity_factor > 0 && std::isfinite(*experts.capacity_factor),
                     fmt::format("experts.capacity_factor must be above 0, got {}", *experts.capacity_factor),
                     "leave it out if no token is dropped");
}

void check_expert_layers(Findings& findings, const ModelSpec& model) {
  const Experts& experts = *model.experts;
  findings.require(
      experts.first_dense_layers >= 0 && experts.layer_interval >= 1,
      fmt::format("experts.first_dense_layers must be 0 or above and layer_interval 1 or above, got {} and {}",
                  experts.first_dense_layers, experts.layer_interval));
  if (!findings.empty()) return;
  findings.require(
      model.expert_layers() >= 1,
      fmt::format("no layer has experts: experts.first_dense_layers {} and layer_interval {} leave none of {}",
                  experts.first_dense_layers, experts.layer_interval, model.mlp_layers()));
}

void check_experts(Findings& findings, const ModelSpec& model) {
  if (!model.experts) return;
  const Experts& experts = *model.experts;
  check_dimension(findings, "experts.count", experts.count);
  check_dimension(findings, "experts.ffn_hidden_size", experts.ffn_hidden_size);
  if (experts.latent_size) check_dimension(findings, "experts.latent_size", *experts.latent_size);
  findings.require(experts.shared_ffn_hidden_size >= 0 && experts.shared_ffn_hidden_size <= k_max_dimension,
                   fmt::format("experts.shared_ffn_hidden_size must be between 0 and {}, got {}", k_max_dimension,
                               experts.shared_ffn_hidden_size));
  findings.require(!experts.shared_gate || experts.shared_ffn_hidden_size > 0,
                   "experts.shared_gate needs shared experts", "state experts.shared_ffn_hidden_size");
  if (!findings.empty()) return;
  check_expert_layers(findings, model);
  check_router(findings, experts);
}

void check_latent_attention(Findings& findings, const ModelSpec& model) {
  if (!model.latent_attention) return;
  const LatentAttention& latent = *model.latent_attention;
  findings.require(
      latent.query_rank >= 0 && latent.query_rank <= k_max_dimension,
      fmt::format("latent_attention.query_rank must be between 0 and {}, got {}", k_max_dimension, latent.query_rank));
  check_dimension(findings, "latent_attention.key_value_rank", latent.key_value_rank);
  check_dimension(findings, "latent_attention.rope_head_dim", latent.rope_head_dim);
  check_dimension(findings, "latent_attention.value_head_dim", latent.value_head_dim);
  findings.require(latent.rope_head_dim % 2 == 0,
                   fmt::format("latent_attention.rope_head_dim {} is odd, but rotary embeddings rotate pairs",
                               latent.rope_head_dim));
  findings.require(!model.qkv_bias && !model.linear_bias && !model.qk_norm,
                   "latent_attention has no biases and norms of its own",
                   "leave qkv_bias, linear_bias and qk_norm out");
}

void check_mamba(Findings& findings, const ModelSpec& model) {
  if (!model.mamba) return;
  const MambaMixers& mamba = *model.mamba;
  check_dimension(findings, "mamba.layers", mamba.layers);
  check_dimension(findings, "mamba.inner_width", mamba.inner_width);
  check_dimension(findings, "mamba.heads", mamba.heads);
  check_dimension(findings, "mamba.groups", mamba.groups);
  check_dimension(findings, "mamba.state", mamba.state);
  check_dimension(findings, "mamba.convolution", mamba.convolution);
  const auto is_size = [](int64_t value) { return value >= 0 && value <= k_max_dimension; };
  findings.require(is_size(mamba.chunk) && is_size(mamba.attention_layers),
                   fmt::format("mamba.chunk and mamba.attention_layers must be between 0 and {}, got {} and {}",
                               k_max_dimension, mamba.chunk, mamba.attention_layers));
  if (!findings.empty()) return;
  findings.require(model.mlp_layers() >= 0,
                   fmt::format("mamba.layers {} and mamba.attention_layers {} are more than num_layers {}",
                               mamba.layers, mamba.attention_layers, model.num_layers));
}

void check_special_layers(Findings& findings, const ModelSpec& model) {
  const auto require_layers = [&](const char* key, const std::optional<int64_t>& value) {
    if (!value) return;
    findings.require(*value >= 0 && *value <= model.num_layers,
                     fmt::format("{} must be between 0 and num_layers {}, got {}", key, model.num_layers, *value));
  };
  require_layers("full_attention_layers", model.full_attention_layers);
  require_layers("prediction_layers", model.prediction_layers);
  findings.require(!model.full_attention_layers || model.sliding_window,
                   "full_attention_layers are those without the sliding window, but sliding_window is not stated",
                   "state sliding_window, or leave full_attention_layers out");
}

void check_attention(Findings& findings, const ModelSpec& model) {
  findings.require(model.num_attention_heads % model.num_key_value_heads == 0,
                   fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                               model.num_attention_heads, model.num_key_value_heads),
                   "each key and value head serves the same number of query heads");
  findings.require(model.position != PositionKind::rope || model.head_dim % 2 == 0,
                   fmt::format("head_dim {} is odd, but rotary embeddings rotate pairs", model.head_dim));
}

void check_constants(Findings& findings, const ModelSpec& model) {
  findings.require(model.norm_eps > 0 && model.norm_eps < 1,
                   fmt::format("norm_eps must be above 0 and below 1, got {}", model.norm_eps));
  findings.require(model.position != PositionKind::rope || (model.rope_theta >= 1 && model.rope_theta <= 1e12),
                   fmt::format("rope_theta must be between 1 and 1e12, got {}", model.rope_theta));
}

void check_rope_scaling(Findings& findings, const ModelSpec& model) {
  if (!model.rope_scaling) return;
  const RopeScaling& scaling = *model.rope_scaling;
  const bool has_length = scaling.type != RopeScalingKind::linear;
  findings.require(model.position == PositionKind::rope,
                   fmt::format("rope_scaling needs position rope, got {}", enum_name(model.position)));
  findings.require(scaling.factor >= 1 && scaling.factor <= 1e6,
                   fmt::format("rope_scaling.factor must be between 1 and 1e6, got {}", scaling.factor));
  if (has_length)
    check_dimension(findings, "rope_scaling.original_max_position_embeddings",
                    scaling.original_max_position_embeddings);
  if (scaling.type == RopeScalingKind::llama3)
    findings.require(scaling.low_freq_factor > 0 && scaling.low_freq_factor < scaling.high_freq_factor &&
                         std::isfinite(scaling.high_freq_factor),
                     fmt::format("rope_scaling.low_freq_factor must be above 0 and below high_freq_factor {}, got {}",
                                 scaling.high_freq_factor, scaling.low_freq_factor));
  if (scaling.type == RopeScalingKind::yarn)
    findings.require(
        scaling.beta_slow > 0 && scaling.beta_slow <= scaling.beta_fast && std::isfinite(scaling.beta_fast),
        fmt::format("rope_scaling.beta_slow must be above 0 and at most beta_fast {}, got {}", scaling.beta_fast,
                    scaling.beta_slow));
}

// In floating point, where the exact count might overflow.
double approximate_parameters(const ModelSpec& model) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double heads = number(model.num_attention_heads + model.num_key_value_heads) * number(model.head_dim);
  const double attention = 2.0 * number(model.hidden_size) * heads;
  double mlp = 3.0 * number(model.hidden_size) * number(model.ffn_hidden_size);
  if (const auto& experts = model.experts)
    mlp += 3.0 * number(model.hidden_size) *
           (number(experts->ffn_hidden_size) * number(experts->count) + number(experts->shared_ffn_hidden_size));
  return number(model.num_layers) * (attention + mlp) + 2.0 * number(model.vocab_size) * number(model.hidden_size);
}

}  // namespace

std::vector<Problem> check_model(const ModelSpec& model, const std::string& where) {
  Findings findings(where);
  check_dimensions(findings, model);
  check_mamba(findings, model);
  if (findings.empty()) check_experts(findings, model);
  check_latent_attention(findings, model);
  check_special_layers(findings, model);
  check_constants(findings, model);
  check_rope_scaling(findings, model);
  if (!findings.empty()) return findings.take();  // the checks below divide and multiply these numbers
  check_attention(findings, model);
  const double parameters = approximate_parameters(model);
  findings.require(parameters <= k_max_parameters,
                   fmt::format("the shape has about {:.1e} parameters, more than the {:.0e} this program counts",
                               parameters, k_max_parameters));
  return findings.take();
}

std::vector<std::string> list_special_parts(const ModelSpec& model) {
  std::vector<std::string> parts;
  const auto add = [&](bool present, const char* what) {
    if (present) parts.emplace_back(what);
  };
  add(model.experts.has_value(), "mixtures of experts");
  add(model.latent_attention.has_value(), "latent attention (MLA)");
  add(model.mamba.has_value(), "state-space layers");
  add(model.attention_sinks.value_or(false), "attention sinks");
  add(model.prediction_layers.value_or(0) > 0, "layers that predict further tokens (MTP)");
  add(model.full_attention_layers.value_or(0) > 0, "a sliding window in some layers only");
  return parts;
}

int64_t least_layers(const ModelSpec& model) {
  const int64_t mixers = model.mamba ? model.mamba->layers + model.mamba->attention_layers : 0;
  return mixers + (model.experts ? model.experts->first_dense_layers : 0);
}

ParameterCount count_parameters(const ModelSpec& model) {
  const LayerWeights layer = weights_of_layer(model);
  const int64_t vocabulary = model.vocab_size * model.hidden_size, sparse = model.expert_layers();
  const int64_t mixers = model.mamba ? model.mamba->layers : 0;
  const Experts experts = model.experts.value_or(Experts());
  const int64_t common = layer.router + layer.router_extras + layer.shared + layer.shared_extras;
  ParameterCount count;
  count.embedding = vocabulary;
  if (model.position == PositionKind::learned) count.embedding += model.max_position_embeddings * model.hidden_size;
  count.attention = model.attention_layers() * (layer.attention + layer.attention_extras);
  count.mamba = mixers * (layer.mixer + layer.mixer_extras);
  count.mlp = model.dense_layers() * (layer.mlp + layer.mlp_extras) +
              sparse * (experts.count * (layer.expert + layer.expert_extras) + common);
  count.norms = model.num_layers * layer.norms + (model.norm == NormKind::layer ? 2 : 1) * model.hidden_size;
  count.head = model.tied_embeddings ? 0 : vocabulary;
  count.idle = sparse * (experts.count - experts.per_token) * (layer.expert + layer.expert_extras);
  count.matmul_active = model.attention_layers() * layer.attention + mixers * layer.mixer +
                        model.dense_layers() * layer.mlp +
                        sparse * (experts.per_token * layer.expert + layer.shared + layer.router) + vocabulary;
  if (const int64_t predicting = model.prediction_layers.value_or(0); predicting > 0) {
    const PredictionBlock block = prediction_block(model);
    const int64_t blocks = model.shared_prediction.value_or(false) ? 1 : predicting;
    count.prediction = blocks * block.parameters;
    count.idle += blocks * (block.parameters - block.active_parameters);
    count.matmul_active += predicting * (block.weights + vocabulary);
  }
  return count;
}

double keys_per_query(const ModelSpec& model, int64_t sequence_length, bool causal) {
  const auto length = static_cast<double>(sequence_length);
  const bool windowed = model.sliding_window && *model.sliding_window < sequence_length;
  const double window = windowed ? static_cast<double>(*model.sliding_window) : length;
  if (!causal) return window;
  if (!windowed) return length / 2;
  // Query i = 1..SL sees min(i, window) keys. The cap keeps a window just below SL from costing more than none.
  return std::min(window - window * (window - 1) / (2 * length), length / 2);
}

std::string formula_id(FlopFormula formula) { return fmt::format("{}/1", enum_name(formula)); }

}  // namespace tprimat
