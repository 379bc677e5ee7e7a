#include "launch/expert_settings.h"

#include <fmt/format.h>

#include "base/check.h"
#include "launch/megatron.h"

namespace tprimat::suite {
namespace {

// "[1]", "[0]*3"
std::string write_run(int64_t value, int64_t count) {
  return count == 1 ? fmt::format("[{}]", value) : fmt::format("[{}]*{}", value, count);
}

Json null_unless(bool stated, Json value) { return stated ? std::move(value) : Json(); }

void add_router(const TrainSpec& spec, Json& to) {
  const Experts& experts = *spec.model.experts;
  const BalancingLoss loss = balancing_loss(experts);
  to["moe_router_topk"] = experts.per_token;
  to["moe_router_score_function"] = std::string(enum_name(experts.router_score));
  to["moe_router_pre_softmax"] = keeps_softmax_of_all(experts);
  to["moe_router_topk_scaling_factor"] = null_unless(experts.weight_scale != 1.0, experts.weight_scale);
  to["moe_router_num_groups"] = null_unless(experts.groups > 1, experts.groups);
  to["moe_router_group_topk"] = null_unless(experts.groups > 1, experts.groups_per_token);
  to["moe_router_dtype"] = "fp32";  // DeepEP and HybridEP take no other weights
  to["moe_router_load_balancing_type"] = std::string(loss.type);
  to["moe_aux_loss_coeff"] = loss.coefficient;
  to["moe_z_loss_coeff"] = null_unless(experts.z_loss_coefficient > 0, experts.z_loss_coefficient);
  to["moe_router_enable_expert_bias"] = experts.balancing == LoadBalancing::bias;
  to["moe_router_force_load_balancing"] = spec.routing == Routing::balanced;
}

std::string dispatcher_type(const TrainSpec& spec) {
  return has_flex_dispatcher(spec) ? "flex" : std::string(enum_name(spec.dispatcher.value_or(Dispatcher::alltoall)));
}

void add_capacity(const Experts& experts, Json& to) {
  const bool drops = experts.capacity_factor.has_value();
  to["moe_expert_capacity_factor"] = null_unless(drops, experts.capacity_factor.value_or(0));
  to["moe_pad_expert_input_to_capacity"] = false;
  if (drops) to["moe_token_drop_policy"] = "probs";  // those of the smallest weights
}

void add_router_limits(Refusals& refusals, const ModelSpec& model) {
  const Experts& experts = *model.experts;
  const std::string key = fmt::format("models.{}.experts", model.name);
  const bool sigmoid = experts.router_score == RouterScore::sigmoid;
  refusals.add_if(sigmoid && experts.per_token > 1 && !experts.normalize_weights, "always normalises sigmoid weights",
                  "set normalize_weights to true", key);
  refusals.add_if(experts.per_token == 1 && experts.normalize_weights,
                  "weights a token's only expert by its score, not by 1", "set normalize_weights to false", key);
  refusals.add_if(experts.groups > 1 && experts.per_token % experts.groups_per_token != 0,
                  fmt::format("scores a group by its best per_token / groups_per_token experts, but {} is no multiple "
                              "of {}",
                              experts.per_token, experts.groups_per_token),
                  "choose a groups_per_token that divides per_token", key);
  refusals.add_if(!sigmoid && experts.balancing == LoadBalancing::bias,
                  "balances experts by a bias only with sigmoid scores",
                  "set router_score to sigmoid, or balancing to aux_loss", key);
}

void add_expert_layout_limits(Refusals& refusals, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(layout.tensor > 1 && !layout.sequence_parallel,
                  fmt::format("trains experts with TP {} only together with sequence parallelism", layout.tensor),
                  "set sequence_parallel to true in the layout, or choose a strategy with TP 1");
  refusals.add_if(spec.model.linear_bias && layout.expert_tensor_ranks() > 1, "does not split experts that have biases",
                  "choose a strategy with ETP 1");
  if (!has_flex_dispatcher(spec)) return;
  const std::string_view name = enum_name(*spec.dispatcher);
  refusals.add_if(layout.expert_ranks() * layout.expert_tensor_ranks() == 1,
                  fmt::format("needs EP x ETP above 1 for the dispatcher {}", name),
                  "choose the dispatcher alltoall, or a strategy with EP above 1", "training.dispatcher");
}

void add_attention_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const bool windows = has_short_window(spec);
  refusals.add_if(windows && model.latent_attention.has_value(),
                  "does not support a sliding window in multi-head latent attention",
                  "leave sliding_window or latent_attention out of the model");
  refusals.add_if(windows && !divides_windows(model),
                  fmt::format("spreads full_attention_layers evenly, but {} layers are no multiple of {}",
                              model.num_layers, model.full_attention_layers.value_or(0)),
                  "choose a number of full_attention_layers that divides num_layers");
  refusals.add_if(model.latent_attention && model.attention_sinks.value_or(false),
                  "does not support attention sinks in multi-head latent attention",
                  "leave attention_sinks or latent_attention out of the model");
  refusals.add_if(model.prediction_layers.value_or(0) > 0 && model.position == PositionKind::learned,
                  "predicts further tokens (MTP) only with rotary positions",
                  "set the model's position to rope, or prediction_layers to 0");
  refusals.add_if(model.latent_attention && model.position == PositionKind::learned,
                  "supports multi-head latent attention only with rotary positions",
                  "set the model's position to rope");
}

void add_module_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  for (const RecomputedModule module : spec.recompute_modules.value_or(std::vector<RecomputedModule>())) {
    const bool of_experts = module == RecomputedModule::expert_activation || module == RecomputedModule::experts ||
                            module == RecomputedModule::shared;
    const bool latent = module == RecomputedModule::latent_projections;
    const bool narrow = module == RecomputedModule::expert_activation || module == RecomputedModule::norms;
    const std::string hint = fmt::format("leave {} out of recompute_modules", enum_name(module));
    refusals.add_if((of_experts && !model.experts) || (latent && !model.latent_attention),
                    fmt::format("cannot recompute {}: the model has none", enum_name(module)), hint);
    refusals.add_if(narrow && spec.precision == Precision::fp8,
                    fmt::format("does not recompute {} in fp8 with delayed scaling", enum_name(module)), hint);
  }
}

}  // namespace

int64_t dense_ffn_width(const ModelSpec& model) {
  return model.ffn_hidden_size > 0 || !model.experts ? model.ffn_hidden_size : model.experts->ffn_hidden_size;
}

std::vector<int64_t> list_expert_layers(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  std::vector<int64_t> layers(static_cast<size_t>(model.num_layers), 0);
  for (int64_t layer = experts.first_dense_layers + experts.layer_interval; layer <= model.num_layers;
       layer += experts.layer_interval)
    layers[static_cast<size_t>(layer - 1)] = 1;
  return layers;
}

std::string write_expert_layers(const ModelSpec& model) {
  const std::vector<int64_t> layers = list_expert_layers(model);
  std::string text;
  for (size_t from = 0, to = 0; from < layers.size(); from = to) {
    while (to < layers.size() && layers[to] == layers[from]) ++to;
    text += (text.empty() ? "" : "+") + write_run(layers[from], static_cast<int64_t>(to - from));
  }
  return "(" + text + ")";
}

BalancingLoss balancing_loss(const Experts& experts) {
  const double coefficient = experts.aux_loss_coefficient;
  if (experts.balancing == LoadBalancing::none || coefficient == 0) return {"none", 0.0};
  return {experts.balancing == LoadBalancing::aux_loss ? "aux_loss" : "seq_aux_loss", coefficient};
}

bool keeps_softmax_of_all(const Experts& experts) {
  return experts.router_score == RouterScore::softmax && !experts.normalize_weights;
}

bool divides_windows(const ModelSpec& model) {
  const int64_t full = model.full_attention_layers.value_or(0);
  return full == 0 || model.num_layers % full == 0;
}

std::optional<int64_t> full_attention_interval(const ModelSpec& model) {
  const int64_t full = model.full_attention_layers.value_or(0);
  if (full == 0) return std::nullopt;
  CHECK(divides_windows(model));
  return model.num_layers / full;
}

bool has_fixed_yarn(const ModelSpec& model) {
  if (!model.latent_attention || !model.rope_scaling) return false;
  RopeScaling yarn;
  yarn.type = RopeScalingKind::yarn;
  yarn.factor = model.rope_scaling->factor;
  yarn.original_max_position_embeddings = 4096;
  return *model.rope_scaling == yarn;
}

bool has_biased_swiglu(const ModelSpec& model) {
  return model.experts && model.linear_bias && model.mlp == MlpKind::swiglu;
}

bool has_flex_dispatcher(const TrainSpec& spec) {
  return spec.dispatcher == Dispatcher::deepep || spec.dispatcher == Dispatcher::hybridep;
}

Json list_expert_settings(const TrainSpec& spec) {
  const Experts& experts = *spec.model.experts;
  Json settings = Json::object();
  settings["num_experts"] = experts.count;
  settings["moe_layer_freq"] = write_expert_layers(spec.model);
  settings["moe_ffn_hidden_size"] = experts.ffn_hidden_size;
  settings["moe_shared_expert_intermediate_size"] =
      null_unless(experts.shared_ffn_hidden_size > 0, experts.shared_ffn_hidden_size);
  if (experts.shared_gate) settings["moe_shared_expert_gate"] = true;
  if (experts.latent_size) settings["moe_latent_size"] = *experts.latent_size;
  settings["moe_grouped_gemm"] = true;
  add_router(spec, settings);
  add_capacity(experts, settings);
  settings["moe_token_dispatcher_type"] = dispatcher_type(spec);
  settings["expert_model_parallel_size"] = spec.parallel.expert_ranks();
  settings["expert_tensor_parallel_size"] = spec.parallel.expert_tensor_ranks();  // their default is TP
  return settings;
}

// Their rotary positions are scaled by YaRN unless told otherwise, and without it have no fused kernel. The norms of
// the narrow queries, keys and values are those of --qk-layernorm.
Json list_latent_attention_settings(const ModelSpec& model) {
  const LatentAttention& attention = *model.latent_attention;
  const bool yarn = has_fixed_yarn(model);
  Json settings = Json::object();
  settings["multi_latent_attention"] = true;
  settings["q_lora_rank"] = null_unless(attention.query_rank > 0, attention.query_rank);
  settings["kv_lora_rank"] = attention.key_value_rank;
  settings["qk_head_dim"] = model.head_dim;
  settings["qk_pos_emb_head_dim"] = attention.rope_head_dim;
  settings["v_head_dim"] = attention.value_head_dim;
  settings["qk_layernorm"] = true;
  settings["rope_type"] = yarn ? "yarn" : "rope";
  settings["rotary_scaling_factor"] = yarn ? model.rope_scaling->factor : 1.0;
  settings["mscale"] = 1.0;  // cosines and sines times 0.1 ln(factor) + 1
  settings["mscale_all_dim"] = 0.0;
  return settings;
}

Json list_prediction_settings(const ModelSpec& model) {
  const int64_t layers = model.prediction_layers.value_or(0);
  Json settings = Json::object();
  settings["mtp_num_layers"] = null_unless(layers > 0, layers);
  if (layers == 0) return settings;
  settings["mtp_loss_scaling_factor"] = k_prediction_loss_factor;
  if (layers > 1 && model.shared_prediction.value_or(false)) settings["mtp_use_repeated_layer"] = true;
  return settings;
}

std::vector<std::string> list_recomputed_modules(const TrainSpec& spec) {
  std::vector<std::string> names;
  for (const RecomputedModule each : spec.recompute_modules.value_or(std::vector<RecomputedModule>()))
    names.emplace_back(enum_name(each));
  return names;
}

void add_sparse_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  refusals.add_if(model.mamba.has_value(),
                  "supports only Transformer models, but this model is a hybrid with Mamba layers",
                  "choose a model without mamba");
  add_attention_limits(refusals, spec);
  add_module_limits(refusals, spec);
  if (!model.experts) return;
  add_router_limits(refusals, model);
  add_expert_layout_limits(refusals, spec);
}

}  // namespace tprimat::suite
