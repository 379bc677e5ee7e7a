#include "spec/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"

namespace tprimat {
namespace {

// Far above any model, and small enough that no product of three of them overflows.
constexpr int64_t k_max_dimension = int64_t{1} << 24;
constexpr double k_max_parameters = 1e17;

int64_t query_width(const ModelSpec& model) { return model.num_attention_heads * model.head_dim; }
int64_t key_value_width(const ModelSpec& model) { return model.num_key_value_heads * model.head_dim; }

int64_t attention_weights(const ModelSpec& model) {
  return model.hidden_size * 2 * (query_width(model) + key_value_width(model));  // q and o; k and v
}

int64_t attention_extras(const ModelSpec& model) {
  int64_t count = 0;
  if (model.qkv_bias || model.linear_bias) count += query_width(model) + 2 * key_value_width(model);
  if (model.linear_bias) count += model.hidden_size;
  if (model.qk_norm) count += 2 * model.head_dim;
  return count;
}

int64_t num_inner_matrices(const ModelSpec& model) { return model.mlp == MlpKind::swiglu ? 2 : 1; }

int64_t expert_weights(const ModelSpec& model) {
  return (num_inner_matrices(model) + 1) * model.hidden_size * model.ffn_hidden_size;
}

int64_t expert_biases(const ModelSpec& model) {
  return model.linear_bias ? num_inner_matrices(model) * model.ffn_hidden_size + model.hidden_size : 0;
}

int64_t router_weights(const ModelSpec& model) {
  return model.num_experts ? *model.num_experts * model.hidden_size : 0;
}

int64_t norm_parameters(const ModelSpec& model) {
  return model.norm == NormKind::layer ? 2 * model.hidden_size : model.hidden_size;
}

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

void check_experts(Findings& findings, const ModelSpec& model) {
  findings.require(model.num_experts.has_value() == model.experts_per_token.has_value(),
                   "num_experts and experts_per_token must be given together",
                   "give both for a mixture of experts, none for a dense model");
  if (!model.num_experts || !model.experts_per_token) return;
  check_dimension(findings, "num_experts", *model.num_experts);
  findings.require(*model.experts_per_token >= 1 && *model.experts_per_token <= *model.num_experts,
                   fmt::format("experts_per_token must be between 1 and num_experts {}, got {}", *model.num_experts,
                               *model.experts_per_token));
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
  const double attention =
      2.0 * number(model.hidden_size) * (number(query_width(model)) + number(key_value_width(model)));
  const double mlp =
      3.0 * number(model.hidden_size) * number(model.ffn_hidden_size) * number(model.num_experts.value_or(1));
  return number(model.num_layers) * (attention + mlp) + 2.0 * number(model.vocab_size) * number(model.hidden_size);
}

}  // namespace

std::vector<Problem> check_model(const ModelSpec& model, const std::string& where) {
  Findings findings(where);
  check_dimensions(findings, model);
  check_experts(findings, model);
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

ParameterCount count_parameters(const ModelSpec& model) {
  const int64_t experts = model.num_experts.value_or(1);
  const int64_t active_experts = model.experts_per_token.value_or(1);
  const int64_t vocabulary = model.vocab_size * model.hidden_size;
  const int64_t positions =
      model.position == PositionKind::learned ? model.max_position_embeddings * model.hidden_size : 0;
  ParameterCount count;
  count.embedding = vocabulary + positions;
  count.attention = model.num_layers * (attention_weights(model) + attention_extras(model));
  count.mlp = model.num_layers * (experts * (expert_weights(model) + expert_biases(model)) + router_weights(model));
  count.norms = (2 * model.num_layers + 1) * norm_parameters(model);
  count.head = model.tied_embeddings ? 0 : vocabulary;
  count.matmul_active =
      model.num_layers * (attention_weights(model) + active_experts * expert_weights(model) + router_weights(model)) +
      vocabulary;
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

double flops_per_token(const ModelSpec& model, int64_t sequence_length, FlopFormula formula,
                       std::optional<int64_t> trainable_parameters) {
  CHECK(sequence_length > 0);
  const ParameterCount parameters = count_parameters(model);
  const auto of_weights = [&](int64_t weights) {
    const int64_t trained = std::clamp<int64_t>(trainable_parameters.value_or(weights), 0, weights);
    return 4.0 * static_cast<double>(weights) + 2.0 * static_cast<double>(trained);
  };
  if (formula == FlopFormula::six_n) return of_weights(parameters.total());
  const double keys = keys_per_query(model, sequence_length, formula == FlopFormula::causal);
  return of_weights(parameters.matmul_active) +
         12.0 * static_cast<double>(model.num_layers * query_width(model)) * keys;
}

std::string formula_id(FlopFormula formula) { return fmt::format("{}/1", enum_name(formula)); }

}  // namespace tprimat
