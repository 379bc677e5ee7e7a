#include "launch/bridge_experts.h"

#include <string>

#include "launch/expert_settings.h"
#include "launch/megatron.h"

namespace tprimat::suite {
namespace {

void add_experts(const TrainSpec& spec, Json& model) {
  const Experts& experts = *spec.model.experts;
  const Json settings = list_expert_settings(spec);
  for (const auto& [name, value] : settings.items()) model[name == "num_experts" ? "num_moe_experts" : name] = value;
  model["moe_layer_freq"] = Json(list_expert_layers(spec.model));
  model["moe_shared_expert_gate"] = experts.shared_gate;
  model["moe_shared_expert_overlap"] = false;  // as the other frameworks; a recipe may have it
  model["moe_enable_deepep"] = false;          // an older name of the next
  if (has_flex_dispatcher(spec)) model["moe_flex_dispatcher_backend"] = std::string(enum_name(*spec.dispatcher));
  if (has_biased_swiglu(spec.model)) model["bias_activation_fusion"] = false;
}

}  // namespace

void add_bridge_experts(const TrainSpec& spec, Json& model) {
  const ModelSpec& shape = spec.model;
  if (shape.latent_attention) {
    model.update(list_latent_attention_settings(shape));
    model["apply_rope_fusion"] = false;  // which Megatron Core has with yarn only
  }
  if (shape.experts) add_experts(spec, model);
  if (shape.experts || shape.prediction_layers.value_or(0) > 0)  // recipes of large models have some
    model.update(list_prediction_settings(shape));
  if (shape.attention_sinks.value_or(false)) model["softmax_type"] = "learnable";
  if (has_short_window(spec) && shape.full_attention_layers)
    if (const auto interval = full_attention_interval(shape)) model["window_attn_skip_freq"] = *interval;
}

void add_bridge_limits(Refusals& refusals, const TrainSpec& spec, bool in_primus) {
  const ModelSpec& model = spec.model;
  refusals.add_if(
      model.prediction_layers.value_or(0) > 1 && model.shared_prediction.value_or(false),
      "gives each layer that predicts further tokens (MTP) its own weights: Megatron Core 0.16 cannot share a block",
      "leave shared_prediction out of the model, or choose the framework mega");
  if (!model.experts) return;
  refusals.add_if(in_primus && model.experts->latent_size.has_value(),
                  "supports only experts of the model's width (no latent_size) where Primus starts it",
                  "leave latent_size out of the model, or install Megatron-Bridge 0.3.1 or later");
}

}  // namespace tprimat::suite
