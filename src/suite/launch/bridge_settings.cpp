#include "launch/bridge_settings.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "launch/bridge_experts.h"
#include "launch/expert_settings.h"
#include "launch/megatron.h"
#include "launch/primus_experiment.h"

namespace tprimat::suite {
namespace {

// A setting of Megatron-Bridge that is also an argument of Megatron-LM.
struct SharedSetting {
  std::string_view section, name;
  std::string_view argument = {};  // Megatron-LM's name; empty: the same

  std::string_view of_megatron() const { return argument.empty() ? name : argument; }
};

constexpr SharedSetting k_shared[] = {
    {"model", "num_layers"},
    {"model", "hidden_size"},
    {"model", "ffn_hidden_size"},
    {"model", "num_attention_heads"},
    {"model", "num_query_groups"},
    {"model", "kv_channels"},
    {"model", "seq_length"},
    {"model", "add_bias_linear"},
    {"model", "add_qkv_bias"},
    {"model", "qk_layernorm"},
    {"model", "normalization"},
    {"model", "layernorm_epsilon", "norm_epsilon"},
    {"model", "hidden_dropout"},
    {"model", "attention_dropout"},
    {"model", "init_method_std"},
    {"model", "make_vocab_size_divisible_by"},
    {"model", "position_embedding_type"},
    {"model", "rotary_base"},
    {"model", "rotary_percent"},
    {"model", "tensor_model_parallel_size"},
    {"model", "pipeline_model_parallel_size"},
    {"model", "context_parallel_size"},
    {"model", "expert_model_parallel_size"},
    {"model", "sequence_parallel"},
    {"model", "recompute_granularity"},
    {"model", "recompute_method"},
    {"model", "recompute_num_layers"},
    {"model", "attention_backend"},
    {"train", "train_iters"},
    {"train", "micro_batch_size"},
    {"train", "global_batch_size"},
    {"train", "rampup_batch_size"},
    {"train", "eval_iters"},
    {"train", "eval_interval"},
    {"optimizer", "optimizer"},
    {"optimizer", "lr"},
    {"optimizer", "min_lr"},
    {"optimizer", "weight_decay"},
    {"optimizer", "adam_beta1"},
    {"optimizer", "adam_beta2"},
    {"optimizer", "adam_eps"},
    {"optimizer", "clip_grad"},
    {"optimizer", "use_distributed_optimizer"},
    {"scheduler", "lr_decay_style"},
    {"scheduler", "lr_decay_iters"},
    {"scheduler", "lr_warmup_iters"},
    {"scheduler", "lr_warmup_fraction"},
    {"scheduler", "lr_warmup_init"},
    {"scheduler", "weight_decay_incr_style"},
    {"scheduler", "start_weight_decay", "weight_decay"},
    {"scheduler", "end_weight_decay", "weight_decay"},
    {"ddp", "use_distributed_optimizer"},
    {"ddp", "check_for_nan_in_grad", "check_for_nan_in_loss_and_grad"},
    {"rng", "seed"},
    {"rerun_state_machine", "check_for_nan_in_loss", "check_for_nan_in_loss_and_grad"},
    {"tokenizer", "tokenizer_type"},
    {"tokenizer", "tokenizer_model"},
    {"checkpoint", "save"},
    {"checkpoint", "load"},
    {"logger", "log_interval"},
    {"logger", "log_throughput"},
    {"mixed_precision", "bf16"},
    {"mixed_precision", "fp16"},
    {"mixed_precision", "fp8"},
    {"mixed_precision", "fp8_param_gather"},
};
constexpr SharedSetting k_loss_scale[] = {
    {"mixed_precision", "loss_scale"},     {"mixed_precision", "initial_loss_scale"},
    {"mixed_precision", "min_loss_scale"}, {"mixed_precision", "loss_scale_window"},
    {"mixed_precision", "hysteresis"},
};

template <size_t count>
void copy_shared(const SharedSetting (&shared)[count], const Json& megatron, Json& settings) {
  for (const SharedSetting& each : shared) settings[each.section][each.name] = megatron.at(each.of_megatron());
}

// gelu is its tanh form, which Megatron fuses with a bias and has alone as fast_gelu.
void add_mlp(const ModelSpec& shape, Json& model) {
  const bool gelu = shape.mlp == MlpKind::gelu;
  model["gated_linear_unit"] = !gelu;
  model["activation_func"] = !gelu ? "silu" : shape.linear_bias ? "gelu" : "fast_gelu";
  model["bias_activation_fusion"] = !gelu || shape.linear_bias;
}

void add_own_model_settings(const TrainSpec& spec, Json& model) {
  const ModelSpec& shape = spec.model;
  model["share_embeddings_and_output_weights"] = shape.tied_embeddings;
  model["window_size"] = has_short_window(spec) ? Json::array({*shape.sliding_window - 1, 0}) : Json();
  const bool linear = shape.rope_scaling && shape.rope_scaling->type == RopeScalingKind::linear;
  model["seq_len_interpolation_factor"] = linear ? Json(shape.rope_scaling->factor) : Json();
  model["num_moe_experts"] = nullptr;  // add_bridge_experts
  model["vocab_size"] = nullptr;       // the tokenizer's
  model["virtual_pipeline_model_parallel_size"] = nullptr;
  model["account_for_embedding_in_pipeline_split"] = false;
  model["account_for_loss_in_pipeline_split"] = false;
  const auto& stages = spec.parallel.pipeline_layout;
  model["pipeline_model_parallel_layout"] = stages ? Json(*stages) : Json();
  model["recompute_modules"] = spec.recompute != Recompute::selective ? Json()
                               : spec.recompute_modules               ? Json(list_recomputed_modules(spec))
                                                                      : Json::array({"core_attn"});
  add_mlp(shape, model);
  add_bridge_experts(spec, model);
}

// Settings under our own names, which the audit of every framework has too.
constexpr std::pair<std::string_view, std::string_view> k_keys[] = {
    {"model.num_layers", "num_layers"},
    {"model.hidden_size", "hidden_size"},
    {"model.ffn_hidden_size", "ffn_hidden_size"},
    {"model.num_attention_heads", "num_attention_heads"},
    {"model.seq_length", "sequence_length"},
    {"model.tensor_model_parallel_size", "tensor_model_parallel_size"},
    {"model.pipeline_model_parallel_size", "pipeline_model_parallel_size"},
    {"model.context_parallel_size", "context_parallel_size"},
    {"model.expert_model_parallel_size", "expert_model_parallel_size"},
    {"model.expert_tensor_parallel_size", "expert_tensor_parallel_size"},
    {"model.recompute_granularity", "recompute"},
    {"train.train_iters", "steps"},
    {"train.micro_batch_size", "micro_batch_size"},
    {"train.global_batch_size", "global_batch_size"},
    {"optimizer.lr", "learning_rate"},
    {"optimizer.min_lr", "min_learning_rate"},
    {"optimizer.weight_decay", "weight_decay"},
    {"optimizer.adam_beta1", "beta1"},
    {"optimizer.adam_beta2", "beta2"},
    {"optimizer.adam_eps", "epsilon"},
    {"optimizer.clip_grad", "clip_grad_norm"},
    {"scheduler.lr_decay_style", "schedule"},
    {"scheduler.lr_warmup_iters", "warmup_steps"},
    {"rng.seed", "seed"},
};

std::string key_of(const std::string& name) {
  const auto* const known = std::ranges::find(k_keys, name, [](const auto& each) { return each.first; });
  return known == std::end(k_keys) ? name : std::string(known->second);
}

}  // namespace

Json list_bridge_settings(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const Json megatron = list_primus_overrides(request);
  Json settings = Json::object();
  copy_shared(k_shared, megatron, settings);
  add_own_model_settings(spec, settings["model"]);
  settings["train"]["train_samples"] = nullptr;
  settings["optimizer"]["decoupled_weight_decay"] = true;
  settings["scheduler"]["lr_decay_samples"] = nullptr;
  settings["scheduler"]["lr_warmup_samples"] = 0;
  if (!shares_optimizer(spec, request.settings.fp8_param)) settings["ddp"]["overlap_param_gather"] = false;
  settings["tokenizer"]["vocab_size"] = spec.model.vocab_size;
  settings["logger"]["tensorboard_dir"] = nullptr;
  settings["mixed_precision"]["fp32"] = spec.precision == Precision::fp32;
  if (spec.precision == Precision::fp8) settings["mixed_precision"]["fp8_recipe"] = "delayed";
  if (spec.precision == Precision::fp16) copy_shared(k_loss_scale, megatron, settings);
  return settings;
}

std::vector<StatedSetting> state_bridge_settings(const LaunchRequest& request) {
  Json settings = list_bridge_settings(request);
  settings["model"]["vocab_size"] = request.spec.model.vocab_size;  // where the tokenizer's has arrived
  std::vector<StatedSetting> stated;
  for (const auto& [section, members] : settings.items())
    for (const auto& [setting, value] : members.items()) {
      const std::string name = section + "." + setting;
      stated.push_back({name, key_of(name), value.is_string() ? value.text() : print_json_line(value)});
    }
  return stated;
}

}  // namespace tprimat::suite
