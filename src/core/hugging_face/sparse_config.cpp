#include "hugging_face/sparse_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tprimat {
namespace {

// The first reason that holds.
struct Reason {
  bool holds;
  std::string_view why;
};

void refuse_if_any(const std::string& family, std::initializer_list<Reason> reasons) {
  for (const Reason& reason : reasons)
    if (reason.holds)
      throw Error(Problem{fmt::format("cannot be written as a Hugging Face model: {}{}{}", family,
                                      family.empty() ? "" : " ", reason.why),
                          "model", "choose the settings of Mixtral, Qwen2-MoE, Qwen3-MoE, DeepSeek-V2 or DeepSeek-V3"});
}

// What no family of experts has.
void refuse_foreign_parts(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  refuse_if_any(
      "",
      {{model.mamba.has_value(), "Mamba mixers are not supported"},
       {model.attention_sinks.value_or(false),
        "attention_sinks: only gpt-oss has them, and no shape describes its clamped SwiGLU"},
       {model.full_attention_layers.has_value(), "experts together with full_attention_layers beside a sliding window"},
       {model.norm != NormKind::rms || model.mlp != MlpKind::swiglu || model.position != PositionKind::rope,
        "experts need norm rms, mlp swiglu and position rope"},
       {model.linear_bias, "experts together with linear_bias"},
       {experts.latent_size.has_value(), "experts.latent_size: no family supports it"},
       {experts.capacity_factor.has_value(), "experts.capacity_factor: no family drops tokens"},
       {model.shared_prediction.value_or(false),
        "shared_prediction: in no family do prediction_layers share weights"}});
}

// DeepSeek: latent attention.
HuggingFaceFamily find_latent_family(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  const bool v3 = experts.router_score == RouterScore::sigmoid;
  refuse_if_any(
      "latent_attention",
      {{model.qk_norm || model.qkv_bias, "together with qk_norm or qkv_bias"},
       {model.sliding_window.has_value(), "together with a sliding window"},
       {model.num_key_value_heads != model.num_attention_heads, "needs as many key/value heads as query heads"},
       {experts.shared_gate, "together with experts.shared_gate"},
       {experts.layer_interval != 1, "together with experts.layer_interval"},
       {experts.shared_ffn_hidden_size == 0 || experts.shared_ffn_hidden_size % experts.ffn_hidden_size != 0,
        "needs experts.shared_ffn_hidden_size to be a multiple of experts.ffn_hidden_size"}});
  if (v3) {
    refuse_if_any("DeepSeek-V3",
                  {{experts.count % experts.groups != 0 || experts.count / experts.groups < 2,
                    "ranks groups by their two best experts, so each group needs two: lower experts.groups"}});
    return HuggingFaceFamily::deepseek_v3;
  }
  refuse_if_any(
      "DeepSeek-V2",
      {{experts.normalize_weights, "does not normalise weights after a softmax: set normalize_weights: false"},
       {experts.balancing == LoadBalancing::bias, "has no balancing by bias: choose another balancing"},
       {experts.groups > 1 && experts.count % experts.groups != 0, "needs groups of equal size"},
       {model.prediction_layers.value_or(0) > 0, "has no prediction_layers"},
       {model.hidden_size % model.num_attention_heads != 0, "needs a hidden_size that num_attention_heads divides"}});
  return HuggingFaceFamily::deepseek_v2;
}

void refuse_deepseek_parts(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  refuse_if_any("",
                {{experts.router_score != RouterScore::softmax,
                  "experts.router_score sigmoid without latent_attention (DeepSeek-V3)"},
                 {experts.groups > 1, "experts.groups without latent_attention (DeepSeek)"},
                 {experts.weight_scale != 1.0, "experts.weight_scale without latent_attention (DeepSeek)"},
                 {experts.balancing == LoadBalancing::bias, "experts.balancing bias without a sigmoid (DeepSeek-V3)"},
                 {model.prediction_layers.value_or(0) > 0, "prediction_layers without latent_attention (DeepSeek-V3)"},
                 {model.qkv_bias && model.qk_norm, "qk_norm together with qkv_bias"}});
}

HuggingFaceFamily find_softmax_family(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  refuse_deepseek_parts(model);
  if (experts.shared_ffn_hidden_size > 0 || model.qkv_bias) {
    refuse_if_any("Qwen2-MoE", {{experts.shared_ffn_hidden_size == 0 || !experts.shared_gate,
                                 "has a shared expert with a gate: set shared_ffn_hidden_size and shared_gate"},
                                {!model.qkv_bias || model.qk_norm, "has qkv_bias and no qk_norm"}});
    return HuggingFaceFamily::qwen2_moe;
  }
  if (model.qk_norm) return HuggingFaceFamily::qwen3_moe;
  refuse_if_any("Mixtral",
                {{experts.first_dense_layers != 0 || experts.layer_interval != 1,
                  "has experts in every layer, and no other family fits a model without qk_norm"},
                 {!experts.normalize_weights, "normalises weights, and no other family fits a model without qk_norm"}});
  return HuggingFaceFamily::mixtral;
}

Json mixtral_config(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  return {{"intermediate_size", experts.ffn_hidden_size},
          {"num_local_experts", experts.count},
          {"router_jitter_noise", 0.0}};
}

// Layers with a dense MLP, counted from 0.
std::vector<int64_t> list_dense_layers(const ModelSpec& model) {
  const Experts& experts = *model.experts;
  std::vector<int64_t> dense;
  for (int64_t layer = 0; layer < model.num_layers; ++layer)
    if (layer < experts.first_dense_layers || (layer - experts.first_dense_layers + 1) % experts.layer_interval != 0)
      dense.push_back(layer);
  return dense;
}

Json qwen_config(const ModelSpec& model, HuggingFaceFamily family) {
  const Experts& experts = *model.experts;
  const bool plain = experts.first_dense_layers == 0;
  Json config{{"num_experts", experts.count},
              {"moe_intermediate_size", experts.ffn_hidden_size},
              {"norm_topk_prob", experts.normalize_weights},
              {"decoder_sparse_step", plain ? experts.layer_interval : 1},
              {"mlp_only_layers", plain ? std::vector<int64_t>{} : list_dense_layers(model)}};
  if (family == HuggingFaceFamily::qwen3_moe) return config;
  config["shared_expert_intermediate_size"] = experts.shared_ffn_hidden_size;
  config["qkv_bias"] = true;
  return config;
}

Json latent_config(const ModelSpec& model) {
  const LatentAttention& latent = *model.latent_attention;
  return {{"q_lora_rank", latent.query_rank == 0 ? Json(nullptr) : Json(latent.query_rank)},
          {"kv_lora_rank", latent.key_value_rank},
          {"qk_nope_head_dim", model.head_dim},
          {"qk_rope_head_dim", latent.rope_head_dim},
          {"head_dim", latent.rope_head_dim},  // the width of the rotary positions
          {"v_head_dim", latent.value_head_dim},
          {"attention_bias", false}};
}

Json deepseek_config(const ModelSpec& model, HuggingFaceFamily family) {
  const Experts& experts = *model.experts;
  const bool v3 = family == HuggingFaceFamily::deepseek_v3;
  Json config = latent_config(model);
  config.update({{"n_routed_experts", experts.count},
                 {"n_shared_experts", experts.shared_ffn_hidden_size / experts.ffn_hidden_size},
                 {"moe_intermediate_size", experts.ffn_hidden_size},
                 {"first_k_dense_replace", experts.first_dense_layers},
                 {"norm_topk_prob", experts.normalize_weights},
                 {"routed_scaling_factor", experts.weight_scale},
                 {"n_group", experts.groups},
                 {"topk_group", experts.groups_per_token},
                 {"scoring_func", v3 ? "sigmoid" : "softmax"}});
  if (v3) {
    config["rope_interleave"] = true;
    config["num_nextn_predict_layers"] = model.prediction_layers.value_or(0);
    if (experts.balancing == LoadBalancing::bias) config["topk_method"] = "noaux_tc";
  } else {
    config["topk_method"] = experts.groups > 1 ? "group_limited_greedy" : "greedy";
  }
  return config;
}

// Transformers computes a loss of balance itself where output_router_logits is true, DeepSeek's own code by
// aux_loss_alpha. The other keys are those of T5-MoE and DeepSeek; Transformers ignores them.
void write_balancing(const Experts& experts, bool deepseek, Json& config) {
  const bool has_loss = experts.balancing != LoadBalancing::none && experts.aux_loss_coefficient > 0.0;
  if (deepseek && has_loss) config["aux_loss_alpha"] = experts.aux_loss_coefficient;
  if (!deepseek) {
    config["output_router_logits"] = has_loss;
    config["router_aux_loss_coef"] = experts.aux_loss_coefficient;
  }
  if (has_loss) config["seq_aux"] = experts.balancing != LoadBalancing::aux_loss;
  if (experts.z_loss_coefficient > 0.0) config["router_z_loss_coef"] = experts.z_loss_coefficient;
}

}  // namespace

bool is_sparse_family(HuggingFaceFamily family) {
  constexpr HuggingFaceFamily k_sparse[] = {HuggingFaceFamily::mixtral,     HuggingFaceFamily::qwen2_moe,
                                            HuggingFaceFamily::qwen3_moe,   HuggingFaceFamily::deepseek_v2,
                                            HuggingFaceFamily::deepseek_v3, HuggingFaceFamily::gpt_oss};
  return std::find(std::begin(k_sparse), std::end(k_sparse), family) != std::end(k_sparse);
}

HuggingFaceFamily find_sparse_family(const ModelSpec& model) {
  refuse_foreign_parts(model);
  return model.latent_attention ? find_latent_family(model) : find_softmax_family(model);
}

Json sparse_config(const ModelSpec& model, HuggingFaceFamily family) {
  const bool deepseek = family == HuggingFaceFamily::deepseek_v2 || family == HuggingFaceFamily::deepseek_v3;
  Json config = family == HuggingFaceFamily::mixtral ? mixtral_config(model)
                : deepseek                           ? deepseek_config(model, family)
                                                     : qwen_config(model, family);
  config["num_experts_per_tok"] = model.experts->per_token;
  // A model without dense layers may leave their width open; Transformers needs one.
  if (!config.contains("intermediate_size") && model.ffn_hidden_size == 0)
    config["intermediate_size"] = model.experts->ffn_hidden_size;
  write_balancing(*model.experts, deepseek, config);
  return config;
}

}  // namespace tprimat
