#include "launch/titan_limits.h"

#include <fmt/format.h>

#include "launch/megatron.h"
#include "launch/torchtitan_config.h"

namespace tprimat::suite {
namespace {

// The part of a model's layers that each family has alone.
void add_parts_limits(Refusals& refusals, const ModelSpec& model) {
  const bool gpt_oss = titan_family(model) == TitanFamily::gpt_oss;
  refusals.add_if(model.mamba.has_value(),
                  "supports only Transformer models, but this model is a hybrid with Mamba layers",
                  "choose a model without mamba");
  refusals.add_if(model.norm != NormKind::rms || model.mlp != MlpKind::swiglu || model.position != PositionKind::rope ||
                      (model.linear_bias && !gpt_oss),
                  "has RMSNorm, SwiGLU and rotary positions, and bias on queries, keys and values at most",
                  "choose a model like Llama, Mistral or Qwen");
  refusals.add_if(model.latent_attention && model.attention_sinks.value_or(false),
                  "has no attention sinks in its deepseek_v3", "leave attention_sinks or latent_attention out");
  refusals.add_if(model.prediction_layers.value_or(0) > 0, "has no layers that predict further tokens (MTP)",
                  fmt::format("set models.{}.prediction_layers to 0", model.name));
  refusals.add_if(gpt_oss && (!model.linear_bias || model.qk_norm),
                  "has attention sinks in its gpt_oss only: with bias on every linear layer and without norms on "
                  "queries and keys",
                  "set linear_bias to true and leave qk_norm out, or leave attention_sinks out");
}

void add_position_limits(Refusals& refusals, const ModelSpec& model) {
  const TitanFamily family = titan_family(model);
  if (!model.rope_scaling) return;
  const bool yarn = family == TitanFamily::deepseek_v3 || family == TitanFamily::gpt_oss;
  const RopeScalingKind supported = yarn ? RopeScalingKind::yarn : RopeScalingKind::llama3;
  refusals.add_if(model.rope_scaling->type != supported,
                  fmt::format("supports rope_scaling {} only{}", enum_name(supported),
                              yarn ? fmt::format(" in its {}", enum_name(family)) : ""),
                  fmt::format("choose {}, or leave rope_scaling out", enum_name(supported)));
}

// gpt_oss has a window in its even layers, from layer 0 on; the others have none.
void add_window_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const int64_t window = model.sliding_window.value_or(0);
  if (titan_family(model) != TitanFamily::gpt_oss) {
    refusals.add_if(has_short_window(spec),
                    fmt::format("does not support a sliding window, and the model's window of {} is shorter than the "
                                "sequence of {}",
                                window, spec.sequence_length),
                    "choose a sequence_length of at most the window");
    return;
  }
  refusals.add_if(!model.sliding_window || model.full_attention_layers != model.num_layers / 2,
                  "has attention sinks in its gpt_oss only: every second layer has a sliding window",
                  fmt::format("state sliding_window, and set full_attention_layers to {}", model.num_layers / 2));
}

void add_family_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const TitanFamily family = titan_family(model);
  const bool qwen3 = family == TitanFamily::qwen3, pipeline = spec.parallel.pipeline > 1;
  refusals.add_if(
      qwen3 && (model.rope_scaling || model.qkv_bias),
      "supports norms on queries and keys, and head widths other than hidden size / heads, in its qwen3 only: without "
      "rope_scaling and without bias",
      "leave out rope_scaling and qkv_bias, or qk_norm and head_dim");
  refusals.add_if(family == TitanFamily::llama4 && model.qkv_bias, "has no bias in its models with experts",
                  "leave qkv_bias out");
  refusals.add_if(
      qwen3 && pipeline,
      "has no pipeline for its qwen3 (norms on queries and keys, or a head width other than hidden size / heads)",
      "set PP to 1");
  refusals.add_if(family == TitanFamily::gpt_oss && (pipeline || spec.parallel.context > 1),
                  "has no pipeline and no context parallelism for its gpt_oss (attention sinks)", "set PP and CP to 1");
  refusals.add_if(model.tied_embeddings && (model.experts || model.latent_attention),
                  "ties the head to the embedding in its dense models only", "leave tied_embeddings out");
  refusals.add_if(model.tied_embeddings && pipeline,
                  "ties the head to the embedding within one stage only, but the layout has a pipeline", "set PP to 1");
}

bool has_balancing_loss(const Experts& experts) {
  return experts.balancing == LoadBalancing::aux_loss || experts.balancing == LoadBalancing::sequence_aux_loss ||
         (experts.balancing == LoadBalancing::bias && experts.aux_loss_coefficient > 0);
}

// Forced balance overrules a balancing loss, which is then left out.
bool overrules_balancing_loss(const TrainSpec& spec) {
  return spec.model.experts && spec.routing == Routing::balanced && has_balancing_loss(*spec.model.experts);
}

void add_router_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const Experts& experts = *model.experts;
  const std::string key = fmt::format("models.{}.experts", model.name);
  refusals.add_if(has_balancing_loss(experts) && !overrules_balancing_loss(spec),
                  "balances experts by a bias of their scores, and has no auxiliary loss",
                  fmt::format("set {0}.balancing to bias and {0}.aux_loss_coefficient to 0, or {0}.balancing to none; "
                              "with training.routing: balanced neither is needed",
                              key),
                  key);
  refusals.add_if(experts.z_loss_coefficient > 0, "has no router z-loss", "set z_loss_coefficient to 0", key);
  refusals.add_if(experts.capacity_factor.has_value(), "drops no tokens, so it does not support a capacity_factor",
                  "leave capacity_factor out", key);
  refusals.add_if(experts.groups > 1 && experts.count / experts.groups < 2,
                  "ranks groups by their two best experts, so each group needs two", "choose fewer groups", key);
  refusals.add_if(experts.shared_gate, "has no gate of the shared experts", "set shared_gate to false", key);
  refusals.add_if(experts.latent_size.has_value(), "supports only experts of the model's width (no latent_size)",
                  "leave latent_size out", key);
}

void add_gpt_oss_limits(Refusals& refusals, const ModelSpec& model) {
  if (titan_family(model) != TitanFamily::gpt_oss) return;
  const bool plain = model.experts && model.experts->shared_ffn_hidden_size == 0 && model.expert_layers() > 0 &&
                     model.dense_layers() == 0 && model.experts->router_score == RouterScore::softmax;
  refusals.add_if(!plain,
                  "has attention sinks in its gpt_oss only: with softmax-routed experts in every layer and no shared "
                  "ones",
                  "leave shared_ffn_hidden_size and first_dense_layers out, or choose a model without attention_sinks");
}

void add_expert_layout_limits(Refusals& refusals, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  const int64_t ranks = layout.expert_ranks(), split = layout.expert_tensor_ranks(), count = spec.model.experts->count;
  refusals.add_if(ranks > 1 && split != 1 && split != layout.tensor,
                  fmt::format("splits an expert over all tensor-parallel ranks or over none, but ETP is {} and TP {}",
                              split, layout.tensor),
                  fmt::format("set ETP to 1 or {}", layout.tensor));
  refusals.add_if(ranks == 1 && layout.expert_tensor && split != layout.tensor,
                  fmt::format("splits each expert over all {} tensor-parallel ranks if EP is 1, but ETP is {}",
                              layout.tensor, split),
                  "leave ETP out, or choose an EP above 1");
  refusals.add_if(
      count % ranks != 0,
      fmt::format("gives every rank the same number of experts, but EP {} does not divide {}", ranks, count),
      "choose an EP that divides experts.count");
  refusals.add_if(ranks > 1 && !shards_with_fsdp(layout), "supports EP only together with DP or CP above 1",
                  "choose a strategy with DP or CP above 1, or EP 1");
}

void add_dispatcher_limits(Refusals& refusals, const TrainSpec& spec) {
  const Dispatcher dispatcher = spec.dispatcher.value_or(Dispatcher::alltoall);
  const char* key = "training.dispatcher";
  refusals.add_if(dispatcher == Dispatcher::allgather || dispatcher == Dispatcher::hybridep,
                  fmt::format("exchanges tokens by all-to-all or DeepEP, not by {}", enum_name(dispatcher)),
                  "set it to alltoall or deepep", key);
  if (dispatcher != Dispatcher::deepep) return;
  refusals.add_if(titan_family(spec.model) != TitanFamily::deepseek_v3, "has DeepEP in its deepseek_v3 only",
                  "set it to alltoall, or choose a model with latent_attention", key);
  refusals.add_if(spec.parallel.expert_ranks() == 1 || spec.parallel.tensor > 1,
                  fmt::format("exchanges tokens by DeepEP with EP above 1 and without TP, but EP is {} and TP {}",
                              spec.parallel.expert_ranks(), spec.parallel.tensor),
                  "set it to alltoall, or choose another strategy", key);
}

void add_processor_limits(Refusals& refusals, const LaunchRequest& request) {
  if (request.platform != Platform::cpu) return;
  refusals.add_if(request.spec.parallel.expert_ranks() > 1, "supports EP on GPUs only", "set EP to 1");
  refusals.add_if(titan_family(request.spec.model) == TitanFamily::gpt_oss,
                  "trains its gpt_oss (attention sinks) on GPUs only", "choose a model without attention_sinks");
}

}  // namespace

void add_titan_model_limits(Refusals& refusals, const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  add_parts_limits(refusals, spec.model);
  add_position_limits(refusals, spec.model);
  add_window_limits(refusals, spec);
  add_family_limits(refusals, spec);
  add_gpt_oss_limits(refusals, spec.model);
  add_processor_limits(refusals, request);
  if (!spec.model.experts) return;
  add_router_limits(refusals, spec);
  add_expert_layout_limits(refusals, spec);
  add_dispatcher_limits(refusals, spec);
  refusals.add_if(spec.precision == Precision::fp8, "does not support fp8 with experts", "choose bf16 or fp32");
}

void add_titan_expert_deviations(std::vector<Deviation>& list, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const ParallelSpec& layout = spec.parallel;
  if (model.latent_attention && model.rope_scaling) {
    const bool longer = spec.sequence_length > model.rope_scaling->original_max_position_embeddings;
    list.push_back({"rope_scaling", describe_rope_scaling(model.rope_scaling),
                    longer ? "the same, but its attention factor scales the whole scores, not only their rotary part"
                           : "none up to original_max_position_embeddings"});
  }
  if (titan_family(model) == TitanFamily::gpt_oss)
    list.push_back({"mlp", "swiglu", "swiglu of gpt-oss: clamped at 7, gated by sigmoid(1.702 x)"});
  if (overrules_balancing_loss(spec))
    list.push_back({"aux_loss_coefficient", fmt::format("{}", model.experts->aux_loss_coefficient),
                    "none: forced balance overrules the balancing loss"});
  if (model.experts && layout.tensor > 1 && layout.expert_ranks() == 1 && !layout.expert_tensor)
    list.push_back({"expert_tensor_parallel_size", "1", std::to_string(layout.tensor)});
}

}  // namespace tprimat::suite
