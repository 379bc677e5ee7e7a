#include "launch/primus_experiment.h"

#include "launch/expert_settings.h"
#include "launch/megatron.h"
#include "launch/primus.h"
#include "launch/primus_arguments.h"

namespace tprimat::suite {
namespace {

void add_shape(const TrainSpec& spec, Json& to) {
  const ModelSpec& model = spec.model;
  to["num_layers"] = model.num_layers;
  to["hidden_size"] = model.hidden_size;
  to["ffn_hidden_size"] = dense_ffn_width(model);
  to["num_attention_heads"] = model.num_attention_heads;
  to["group_query_attention"] = !model.latent_attention && model.num_key_value_heads != model.num_attention_heads;
  to["num_query_groups"] = model.num_key_value_heads;
  to["kv_channels"] = model.head_dim;
  to["max_position_embeddings"] = model.max_position_embeddings;
  to["untie_embeddings_and_output_weights"] = !model.tied_embeddings;
  to["add_bias_linear"] = model.linear_bias;
  to["add_qkv_bias"] = model.qkv_bias || model.linear_bias;
  to["qk_layernorm"] = model.qk_norm;
  to["normalization"] = model.norm == NormKind::rms ? "RMSNorm" : "LayerNorm";
  to["norm_epsilon"] = model.norm_eps;
  to["num_experts"] = nullptr;  // add_experts
  to["multi_latent_attention"] = false;
  to["hidden_dropout"] = 0.0;
  to["attention_dropout"] = 0.0;
  to["init_method_std"] = 0.02;
  to["tokenizer_type"] = "NullTokenizer";  // the data are token ids already
  to["tokenizer_model"] = nullptr;
  to["vocab_size"] = model.vocab_size - 1;                        // to which it adds one for the end of a document
  to["make_vocab_size_divisible_by"] = vocabulary_divisor(spec);  // times TP
}

void add_latent_attention(const ModelSpec& model, Json& to) {
  if (!model.latent_attention) return;
  to.update(list_latent_attention_settings(model));
  to["apply_rope_fusion"] = false;
}

// DeepEP is that of Primus-Turbo, which its stages without synchronisation choose, too.
void add_dispatcher(const TrainSpec& spec, Json& to) {
  const bool fused = has_flex_dispatcher(spec);
  to["moe_enable_deepep"] = fused;
  to["use_turbo_deepep"] = fused;
  to["turbo_sync_free_moe_stage"] = 0;
  if (!fused) return;
  to["enable_primus_turbo"] = true;
  to["moe_shared_expert_overlap"] = false;
}

void add_experts(const TrainSpec& spec, Json& to) {
  if (spec.model.experts || spec.model.prediction_layers) to.update(list_prediction_settings(spec.model));
  if (!spec.model.experts) return;
  to.update(list_expert_settings(spec));
  if (has_biased_swiglu(spec.model)) to["bias_swiglu_fusion"] = false;
  add_dispatcher(spec, to);
}

// Both of Megatron-LM's ways to gelu's tanh form: fused with the bias, or alone.
void add_mlp(const ModelSpec& model, Json& to) {
  const bool gelu = model.mlp == MlpKind::gelu;
  to["swiglu"] = !gelu;
  to["openai_gelu"] = gelu && !model.linear_bias;
  to["bias_gelu_fusion"] = gelu && model.linear_bias;
}

void add_positions(const ModelSpec& model, Json& to) {
  const bool rope = model.position == PositionKind::rope;
  to["position_embedding_type"] = rope ? "rope" : "learned_absolute";
  to["add_position_embedding"] = !rope;
  to["rotary_base"] = model.rope_theta;
  to["rotary_percent"] = 1.0;
  to["use_rope_scaling"] = rope && model.rope_scaling.has_value();  // Llama 3.1's: the launcher refused all others
  to["rotary_seq_len_interpolation_factor"] = nullptr;
}

void add_layout(const TrainSpec& spec, Json& to) {
  const ParallelSpec& layout = spec.parallel;
  to["tensor_model_parallel_size"] = layout.tensor;
  to["pipeline_model_parallel_size"] = layout.pipeline;
  const bool interleaves = layout.virtual_pipeline > 1 && !layout.pipeline_layout;  // else VP follows from the list
  to["num_virtual_stages_per_pipeline_rank"] = interleaves ? Json(layout.virtual_pipeline) : Json();
  to["num_layers_per_virtual_pipeline_stage"] = nullptr;
  to["pipeline_model_parallel_layout"] = layout.pipeline_layout ? Json(*layout.pipeline_layout) : Json();
  to["decoder_first_pipeline_num_layers"] = nullptr;
  to["decoder_last_pipeline_num_layers"] = nullptr;
  to["context_parallel_size"] = layout.context;
  to["expert_model_parallel_size"] = 1;
  to["sequence_parallel"] = layout.sequence_parallel && layout.tensor > 1;
}

// A base states its own overlap settings; without one these are from AMD's examples of dense models for this GPU.
void add_sharing(const LaunchRequest& request, Json& to) {
  const bool shares = shares_optimizer(request.spec, request.settings.fp8_param);
  to["use_distributed_optimizer"] = shares;
  to["use_torch_fsdp2"] = false;
  if (!shares) to["overlap_param_gather"] = false;  // Megatron-LM gathers weights only where they are shared
  if (!request.model_notes.primus_config.empty()) return;
  to["overlap_param_gather"] = shares;
  to["overlap_grad_reduce"] = true;
  to["gradient_accumulation_fusion"] = false;
}

void add_batch(const TrainSpec& spec, Json& to) {
  to["train_iters"] = spec.steps;
  to["micro_batch_size"] = spec.micro_batch_size;
  to["global_batch_size"] = spec.global_batch_size;
  to["rampup_batch_size"] = nullptr;
  to["seq_length"] = spec.sequence_length;
  to["seed"] = spec.seed;
}

void add_optimizer(const TrainSpec& spec, Json& to) {
  const OptimizerSpec& optimizer = spec.optimizer;
  to["optimizer"] = "adam";  // decoupled decay
  to["lr"] = optimizer.learning_rate;
  to["min_lr"] = optimizer.min_learning_rate;
  to["lr_decay_style"] = std::string(enum_name(optimizer.schedule));
  to["lr_decay_iters"] = spec.steps;
  to["lr_warmup_iters"] = optimizer.warmup_steps;
  to["lr_warmup_fraction"] = nullptr;
  to["lr_warmup_init"] = 0.0;
  to["weight_decay"] = optimizer.weight_decay;
  to["start_weight_decay"] = nullptr;
  to["end_weight_decay"] = nullptr;
  to["weight_decay_incr_style"] = "constant";
  to["adam_beta1"] = optimizer.beta1;
  to["adam_beta2"] = optimizer.beta2;
  to["adam_eps"] = optimizer.epsilon;
  to["clip_grad"] = optimizer.clip_grad_norm;
}

void add_precision(const LaunchRequest& request, Json& to) {
  const TrainSpec& spec = request.spec;
  const bool fp8 = spec.precision == Precision::fp8;
  to["bf16"] = fp8 || spec.precision == Precision::bf16;
  to["fp16"] = spec.precision == Precision::fp16;
  to["grad_reduce_in_bf16"] = false;
  to["fp8"] = fp8 ? Json(request.settings.fp8_hybrid.value_or(true) ? "hybrid" : "e4m3") : Json();
  to["fp8_param_gather"] = fp8 && request.settings.fp8_param.value_or(false);
  to["loss_scale"] = nullptr;
  to["initial_loss_scale"] = spec.loss_scale.initial;
  to["min_loss_scale"] = spec.loss_scale.minimum;
  to["loss_scale_window"] = spec.loss_scale.window;
  to["hysteresis"] = 1;  // each overflow halves the scale
  to["check_for_nan_in_loss_and_grad"] = spec.anomalies.not_finite == OnAnomaly::stop;
}

void add_memory_and_attention(const LaunchRequest& request, Json& to) {
  const Recompute recompute = request.spec.recompute;
  const bool full = recompute == Recompute::full;
  to["recompute_activations"] = false;
  to["recompute_granularity"] = recompute == Recompute::none ? Json() : Json(std::string(enum_name(recompute)));
  if (request.spec.recompute_modules) to["recompute_modules"] = list_recomputed_modules(request.spec);
  to["recompute_method"] = full ? Json("uniform") : Json();
  to["recompute_num_layers"] = full ? Json(1) : Json();
  const bool fused = request.settings.flash_attention.value_or(true);
  to["attention_backend"] = fused ? "auto" : "unfused";  // which fused kernel there is, differs between ROCm's images
  to["use_flash_attn"] = fused;
}

// A whole data set is passed as training data: without train_data_path Primus prepares its own.
void add_data(const LaunchRequest& request, Json& to) {
  const DataSpec& data = request.spec.data;
  to["mock_data"] = data.is_synthetic();
  to["train_data_path"] = data.is_synthetic() ? Json() : Json(data.dataset);
  to["valid_data_path"] = nullptr;
  to["test_data_path"] = nullptr;
  to["data_path"] = nullptr;
  to["split"] = data.is_synthetic() ? Json(data.split) : Json();
  to["data_cache_path"] = request.paths.folder + "/data_cache";
  to["dataloader_type"] = "single";  // in the data set's order, not shuffled once more
  to["eod_mask_loss"] = false;
  to["reset_position_ids"] = false;
  to["reset_attention_mask"] = false;
}

// Primus ignores `save` and saves into its workspace, so the interval lies beyond the end.
void add_log_and_checkpoints(const TrainSpec& spec, Json& to) {
  to["log_interval"] = 1;
  to["log_throughput"] = true;
  to["stderr_sink_level"] = "DEBUG";  // with the arguments, which are compared with those asked for
  to["disable_tensorboard"] = true;
  to["disable_wandb"] = true;
  to["eval_iters"] = 0;
  to["eval_interval"] = spec.steps + 1;
  to["save"] = nullptr;
  to["save_interval"] = spec.steps + 1;
  to["disable_last_saving"] = true;
  to["load"] = nullptr;
  to["finetune"] = false;
  to["auto_continue_train"] = false;
}

// As Megatron-LM's: the PyTorch profiler records from the step `start` on, and writes its trace as the step `end`
// begins. A base that records would slow a measured run down.
void add_profile(const std::optional<ProfileWindow>& window, Json& to) {
  const bool records = window && window->profiler == Profiler::torch;
  to["profile"] = records;
  if (!records) return;
  to["use_pytorch_profiler"] = true;
  to["profile_ranks"] = Json::array({0});
  to["profile_step_start"] = window->first_step;
  to["profile_step_end"] = window->last_step + 1;
  to["torch_profiler_record_shapes"] = false;
  to["torch_profiler_with_stack"] = false;
  to["torch_profiler_use_gzip"] = true;
}

}  // namespace

Json list_primus_overrides(const LaunchRequest& request) {
  Json overrides = Json::object();
  add_shape(request.spec, overrides);
  add_mlp(request.spec.model, overrides);
  add_positions(request.spec.model, overrides);
  add_layout(request.spec, overrides);
  add_latent_attention(request.spec.model, overrides);
  add_experts(request.spec, overrides);
  add_sharing(request, overrides);
  add_batch(request.spec, overrides);
  add_optimizer(request.spec, overrides);
  add_precision(request, overrides);
  add_memory_and_attention(request, overrides);
  add_data(request, overrides);
  add_log_and_checkpoints(request.spec, overrides);
  add_profile(request.profile, overrides);
  add_primus_arguments(request.arguments, overrides);
  return overrides;
}

std::string write_primus_experiment(const LaunchRequest& request) {
  const std::string& stated = request.model_notes.primus_config;
  const std::string base = stated.empty() ? "" : primus_config_path(request.checkout, stated);
  return write_primus_file(
      request, {"megatron", "pre_trainer.yaml", "language_model.yaml", list_primus_overrides(request)}, base);
}

}  // namespace tprimat::suite
