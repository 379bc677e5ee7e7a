#include <algorithm>
#include <cmath>
#include <filesystem>

#include "launch/expert_settings.h"
#include "launch/installed.h"
#include "launch/loaded_checkpoint.h"
#include "launch/megatron.h"
#include "launch/profilers.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

fs::path mgds_place(const Checkout& checkout) {
  return place_of_checkout(checkout, {"/workspace/Megatron-DeepSpeed"}, k_pretrain_script);
}

void add_layout_limits(Refusals& refusals, const ParallelSpec& layout) {
  refusals.add_if(layout.context > 1, "does not support context parallelism",
                  "choose a strategy with CP 1, or the framework mega");
  refusals.add_if(layout.virtual_pipeline > 1, "does not support virtual pipeline stages under DeepSpeed",
                  "choose a strategy with VP 1, or the framework mega");
  refusals.add_if(layout.ends_as_layers, "splits the layers by its own rule",
                  "choose a strategy without embedding_and_loss_as_layers, or the framework mega");
  refusals.add_if(layout.pipeline > 1 && layout.zero_stage >= 2,
                  fmt::format("does not support ZeRO-{} with pipeline parallelism", layout.zero_stage),
                  "set zero_stage to 0 or 1, or choose a strategy with PP 1");
}

// DeepSpeed's gate scores by a softmax. It divides the weights of several experts by their sum, and keeps that of one.
void add_gate_limits(Refusals& refusals, const ModelSpec& model) {
  const Experts& experts = *model.experts;
  const std::string key = fmt::format("models.{}.experts", model.name);
  const auto refuse = [&](bool asked, const std::string& what) {
    refusals.add_if(asked, what, "choose the framework mega", key);
  };
  refuse(experts.router_score != RouterScore::softmax, "supports only softmax router scores");
  refuse(experts.normalize_weights != (experts.per_token > 1),
         "normalises weights if a token passes several experts, and only then");
  refuse(experts.weight_scale != 1.0, "does not scale the weights of experts");
  refuse(experts.groups > 1, "does not route by groups of experts");
  refuse(experts.shared_ffn_hidden_size > 0, "has no shared experts");
  refuse(experts.latent_size.has_value(), "supports only experts of the model's width (no latent_size)");
  refuse(experts.first_dense_layers > 0, "places dense layers at equal distances, not at the beginning");
  refuse(model.dense_layers() > 0 && model.ffn_hidden_size != experts.ffn_hidden_size,
         "supports only one ffn_hidden_size for dense layers and experts");
  refuse(model.linear_bias, "leaves out the biases of experts");
  refuse(balancing_loss(experts).type == "seq_aux_loss" || experts.balancing == LoadBalancing::bias,
         "balances experts by a loss over the micro-batch only");
  refuse(experts.z_loss_coefficient > 0, "has no router z-loss");
}

void add_expert_layout_limits(Refusals& refusals, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(layout.tensor > 1 && layout.sequence_parallel, "does not train experts with sequence parallelism",
                  "set sequence_parallel to false in the layout, or choose the framework mega");
  refusals.add_if(layout.expert_tensor_ranks() != 1 && layout.expert_tensor_ranks() != layout.tensor,
                  fmt::format("splits experts over all {} tensor-parallel ranks or not at all", layout.tensor),
                  "choose a strategy with ETP 1 or ETP equal to TP, or the framework mega");
  refusals.add_if(layout.zero_stage > 2, "does not support ZeRO-3 with experts", "set zero_stage to 0, 1 or 2");
  refusals.add_if(spec.dispatcher.value_or(Dispatcher::alltoall) != Dispatcher::alltoall,
                  "has only one dispatcher, alltoall", "leave dispatcher out, or choose the framework mega",
                  "training.dispatcher");
  refusals.add_if(spec.routing == Routing::balanced, "cannot force balanced routing",
                  "leave routing out, or choose the framework mega", "training.routing");
}

void add_mgds_model_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const auto refuse = [&](bool asked, const char* what, const char* hint) {
    refusals.add_if(asked, fmt::format("does not support {}", what), hint);
  };
  refuse(model.qk_norm, "qk_norm", "choose the framework mega, or a model without qk_norm");
  refuse(model.mamba.has_value(), "Mamba layers", "choose a model without mamba");
  refuse(model.latent_attention.has_value(), "multi-head latent attention", "choose the framework mega");
  refuse(model.prediction_layers.value_or(0) > 0, "layers that predict further tokens (MTP)",
         "choose the framework mega");
  refuse(model.attention_sinks.value_or(false), "attention sinks", "choose the framework mega");
  if (!model.experts) return;
  add_gate_limits(refusals, model);
  add_expert_layout_limits(refusals, spec);
}

void require_mgds_can(const TrainSpec& spec) {
  Refusals refusals(Framework::mgds);
  add_megatron_limits(refusals, spec);
  refusals.throw_if_any();
  add_layout_limits(refusals, spec.parallel);
  refuse_megatron_settings(refusals, spec);
  add_mgds_model_limits(refusals, spec);
  refusals.add_if(has_short_window(spec), "does not support a sliding window",
                  fmt::format("choose the framework mega, or set training.data.seq_length to {} or less",
                              spec.model.sliding_window.value_or(0)));
  refusals.add_if(spec.data.is_synthetic(), "reads .bin/.idx files only",
                  "make some: tprimat data make --prefix P --tokens N --vocab V; then --dataset P, or "
                  "models.X.dataset_path: P");
  refusals.add_if(
      spec.precision == Precision::fp16 &&
          std::log2(spec.loss_scale.initial) != std::floor(std::log2(spec.loss_scale.initial)),
      "needs a power of two as the initial loss scale",
      fmt::format("set training.precision.loss_scale.initial to {}", nearest_power_of_two(spec.loss_scale.initial)));
  refusals.throw_if_any();
}

void add_mgds_model(ArgumentList& list, const ModelSpec& model) {
  list.add("--num-layers", model.num_layers);
  list.add("--hidden-size", model.hidden_size);
  list.add("--ffn-hidden-size", model.experts ? model.experts->ffn_hidden_size : model.ffn_hidden_size);
  list.add("--num-attention-heads", model.num_attention_heads);
  list.add("--num-key-value-heads", model.num_key_value_heads);
  list.add("--kv-channels", model.head_dim);
  list.add("--max-position-embeddings", model.max_position_embeddings);
  if (model.position == PositionKind::rope) {
    list.flag("--use-rotary-position-embeddings");
    list.add("--rotary-position-embeddings-theta", std::llround(model.rope_theta));
  }
  list.add("--normalization", model.norm == NormKind::rms ? "rmsnorm" : "layernorm");
  list.add("--layernorm-epsilon", model.norm_eps);
  list.flag_if(model.mlp == MlpKind::swiglu, "--swiglu");
  list.flag_if(!model.linear_bias, "--disable-bias-linear");
  list.flag_if(!model.tied_embeddings, "--untie-embeddings-and-output-weights");
  list.flag("--no-query-key-layer-scaling");
  list.add("--attention-dropout", 0);
  list.add("--hidden-dropout", 0);
}

// Without the last flags it would sample the second of two experts, drop tokens, keep space for four tokens per expert,
// and hand ZeRO the experts' weights among the others.
void add_mgds_experts(ArgumentList& list, const TrainSpec& spec) {
  if (!spec.model.experts) return;
  const Experts& experts = *spec.model.experts;
  list.add("--num-experts", experts.count);
  list.add("--topk", experts.per_token);
  list.add("--expert-interval", experts.layer_interval);
  list.add("--moe-expert-parallel-size", spec.parallel.expert_ranks());
  list.flag_if(spec.parallel.expert_tensor_ranks() > 1, "--enable-expert-tensor-parallelism");
  list.add("--moe-loss-coeff", balancing_loss(experts).coefficient);
  list.flag("--disable-moe-top2-2nd-expert-sampling");
  if (experts.capacity_factor) {
    list.add("--moe-train-capacity-factor", *experts.capacity_factor);
    list.add("--moe-eval-capacity-factor", *experts.capacity_factor);
  } else {
    list.flag("--disable-moe-token-dropping");
  }
  list.add("--moe-min-capacity", 0);
  list.flag("--create-moe-param-group");
}

void add_mgds_data(ArgumentList& list, const TrainSpec& spec) {
  list.add("--tokenizer-type", "NullTokenizer");
  list.add("--vocab-size", spec.model.vocab_size - 1);  // it counts an end-of-document token beyond these
  list.add("--make-vocab-size-divisible-by", vocabulary_divisor(spec));
  list.add("--data-path", spec.data.dataset);
  list.add("--split", spec.data.split);
}

// Only with ZeRO does DeepSpeed add up bf16 gradients in fp32.
int64_t mgds_zero_stage(const TrainSpec& spec) {
  const bool bf16 = spec.precision == Precision::bf16 || spec.precision == Precision::fp8;
  return std::max<int64_t>(spec.parallel.zero_stage, bf16 ? 1 : 0);
}

void add_mgds_layout(ArgumentList& list, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  list.add("--tensor-model-parallel-size", layout.tensor);
  list.add("--pipeline-model-parallel-size", layout.pipeline);
  list.flag_if(layout.pipeline == 1, "--no-pipeline-parallel");
  list.flag_if(layout.sequence_parallel && layout.tensor > 1, "--sequence-parallel");
  list.add("--zero-stage", mgds_zero_stage(spec));
  list.flag("--no-gradient-accumulation-fusion");  // it is not used, but its library would be asked for
}

void add_mgds_recompute(ArgumentList& list, Recompute recompute) {
  list.flag_if(recompute == Recompute::full, "--checkpoint-activations");
  list.flag_if(recompute == Recompute::full, "--deepspeed-activation-checkpointing");
  if (recompute == Recompute::selective) list.add("--recompute-granularity", "selective");
}

void add_mgds_platform(ArgumentList& list, const LaunchRequest& request) {
  if (request.spec.precision == Precision::fp8) {
    list.add("--transformer-impl", "transformer_engine");
    list.flag(request.settings.fp8_hybrid.value_or(true) ? "--fp8-hybrid" : "--fp8-e4m3");
  }
  list.flag_if(request.settings.flash_attention.value_or(false), "--use-flash-attn-v2");
}

// The settings that DeepSpeed reads from here and not from the command line, and those that must agree in both.
Json make_ds_config(const TrainSpec& spec) {
  Json config = {{"train_batch_size", spec.global_batch_size},
                 {"train_micro_batch_size_per_gpu", spec.micro_batch_size},
                 {"gradient_accumulation_steps", spec.gradient_accumulation_steps()},
                 {"steps_per_print", 1},
                 {"gradient_clipping", spec.optimizer.clip_grad_norm},
                 {"zero_optimization", {{"stage", mgds_zero_stage(spec)}}},
                 {"wall_clock_breakdown", false}};
  if (spec.precision == Precision::bf16 || spec.precision == Precision::fp8) {
    config["bf16"] = {{"enabled", true}};
    config["data_types"] = {{"grad_accum_dtype", "fp32"}};
  }
  if (spec.precision == Precision::fp16)
    config["fp16"] = {{"enabled", true},
                      {"loss_scale", 0},
                      {"initial_scale_power", std::llround(std::log2(spec.loss_scale.initial))},
                      {"loss_scale_window", spec.loss_scale.window},
                      {"hysteresis", 1},
                      {"min_loss_scale", spec.loss_scale.minimum}};
  return config;
}

std::vector<Deviation> mgds_deviations(const LaunchRequest& request) {
  const ModelSpec& model = request.spec.model;
  std::vector<Deviation> list;
  add_schedule_deviation(list, request.spec.optimizer);
  if (const int64_t stage = mgds_zero_stage(request.spec); stage != request.spec.parallel.zero_stage)
    list.push_back({"zero_stage", std::to_string(request.spec.parallel.zero_stage), std::to_string(stage)});
  if (model.rope_scaling) list.push_back({"rope_scaling", describe_rope_scaling(model.rope_scaling), "none"});
  if (model.qkv_bias && !model.linear_bias) list.push_back({"qkv_bias", "true", "false"});
  if (model.rope_theta != std::round(model.rope_theta))
    list.push_back(
        {"rope_theta", fmt::format("{}", model.rope_theta), fmt::format("{}", std::llround(model.rope_theta))});
  if (request.spec.precision == Precision::fp8 && request.settings.fp8_param.value_or(false))
    list.push_back({"fp8_param", "true", "false"});
  if (model.experts && model.experts->per_token == 2 && balancing_loss(*model.experts).coefficient > 0)
    list.push_back({"aux_loss", "counts both experts of a token", "counts the first expert of a token"});
  return list;
}

// The PyTorch profiler alone, of every rank.
void add_mgds_profile(ArgumentList& list, const LaunchRequest& request) {
  if (!request.profile || request.profile->whole_run) return;
  list.add("--profile", "pt");
  list.add("--profile_steps", fmt::format("{},{}", request.profile->first_step, request.profile->last_step));
  list.add("--tensorboard-dir", torch_trace_folder(request.paths));
}

// DeepSpeed loads what the folder's file `latest` names; without the second flag it would refuse another schedule.
void add_mgds_load(ArgumentList& list, const CheckpointSpec& checkpoint) {
  if (!checkpoint.load) return;
  list.add("--load", *checkpoint.load);
  list.flag("--override-opt_param-scheduler");
}

std::vector<std::string> mgds_arguments(const LaunchRequest& request, const std::string& ds_config,
                                        const std::string& checkpoints) {
  const TrainSpec& spec = request.spec;
  ArgumentList list;
  list.flag("--deepspeed");
  list.add("--deepspeed_config", ds_config);
  add_mgds_model(list, spec.model);
  add_mgds_experts(list, spec);
  add_batch_arguments(list, spec);
  add_optimizer_arguments(list, spec);
  add_precision_arguments(list, spec);
  add_mgds_data(list, spec);
  add_mgds_layout(list, spec);
  add_mgds_recompute(list, spec.recompute);
  add_mgds_platform(list, request);
  add_evaluation_arguments(list, spec);
  add_checkpoint_arguments(list, spec, checkpoints);
  add_mgds_profile(list, request);
  add_mgds_load(list, spec.checkpoint);
  list.add("--log-interval", 1);
  return std::move(list).take();
}

std::optional<Installation> find_mgds(const Checkout& checkout) { return find_pretrain_script(mgds_place(checkout)); }

TrainProgram plan_mgds(const LaunchRequest& asked) {
  const LaunchRequest request = with_absolute_dataset(asked);
  require_mgds_can(request.spec);
  const std::string ds_config = request.paths.folder + "/ds_config.json";
  TrainProgram program = run_pretrain_script(Framework::mgds, mgds_place(request.checkout), request);
  append(program.arguments, mgds_arguments(request, ds_config, program.checkpoints_path));
  program.files = {{ds_config, print_json(make_ds_config(request.spec))}};
  program.environment.emplace("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  program.deviations = mgds_deviations(request);
  return program;
}

}  // namespace

// Megatron-DeepSpeed: pretrain_gpt.py of a checkout (`paths.megatron_deepspeed`, MEGATRON_DEEPSPEED_PATH) with a
// ds_config.json, under torchrun. The steps are read from its log.
FrameworkModule mgds_module() {
  FrameworkModule module = {Framework::mgds,
                            "Megatron-DeepSpeed",
                            {Platform::nvd, Platform::amd},
                            find_mgds,
                            plan_mgds,
                            "set paths.megatron_deepspeed.installation or MEGATRON_DEEPSPEED_PATH to its checkout",
                            "megatron_deepspeed",
                            {Profiler::torch, Profiler::nsys, Profiler::rocprofv3}};
  module.takes_arguments = true;
  module.unmarked = {Profiler::nsys, Profiler::rocprofv3};
  module.find_checkpoint = find_megatron_deepspeed_checkpoint;
  module.checked = {"Megatron-DeepSpeed", {"207b2d5aad1e"}, "DeepSpeed 0.19.8"};  // its flags
  module.trains_in = [](Precision precision, Platform) { return precision != Precision::tf32; };
  return module;
}

}  // namespace tprimat::suite
