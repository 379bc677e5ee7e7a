#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "launch/expert_settings.h"
#include "launch/installed.h"
#include "launch/loaded_checkpoint.h"
#include "launch/megatron.h"
#include "launch/profilers.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Of NVIDIA's NeMo container and of AMD's Megatron container.
fs::path mega_place(const Checkout& checkout) {
  return place_of_checkout(checkout, {"/opt/megatron-lm", "/workspace/Megatron-LM"}, k_pretrain_script);
}

// The settings of the flex dispatcher, and those of a model that are not in every checked version.
constexpr std::string_view k_flex_setting = "moe_flex_dispatcher_backend";

// Whether the checkout is here and its configuration of Transformers has no such field.
bool lacks_setting(const fs::path& checkout, std::string_view name) {
  try {
    return read_file(checkout / "megatron/core/transformer/transformer_config.py").find(name) == std::string::npos;
  } catch (const Error&) {  // not here
    return false;
  }
}

void add_version_limits(Refusals& refusals, const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const ParallelSpec& layout = spec.parallel;
  const fs::path checkout = mega_place(request.checkout);
  const auto refuse = [&](bool asked, std::string_view setting, const std::string& what, const std::string& key) {
    refusals.add_if(asked && lacks_setting(checkout, setting),
                    fmt::format("has no {} in this version: {} is not known to it", what, setting),
                    fmt::format("update Megatron-LM, or leave {} out", key), checkout.string());
  };
  const Json experts = spec.model.experts ? list_expert_settings(spec) : Json::object();
  refuse(spec.dispatcher == Dispatcher::hybridep, k_flex_setting, "HybridEP", "training.dispatcher");
  refuse(experts.contains("moe_shared_expert_gate"), "moe_shared_expert_gate", "gate of shared experts", "shared_gate");
  refuse(experts.contains("moe_latent_size"), "moe_latent_size", "experts of another width", "latent_size");
  refuse(spec.recompute_modules.has_value(), "recompute_modules", "choice of what is recomputed", "recompute_modules");
  refuse(layout.pipeline_layout.has_value(), "pipeline_model_parallel_layout", "list of a pipeline's layers",
         "pipeline_layout");
  refuse(list_prediction_settings(spec.model).contains("mtp_use_repeated_layer"), "mtp_use_repeated_layer",
         "block shared by the layers that predict further tokens", "shared_prediction");
  refusals.add_if(spec.dispatcher == Dispatcher::hybridep && request.platform == Platform::amd,
                  "has the dispatcher hybridep for NVIDIA GPUs only", "choose the dispatcher alltoall or deepep",
                  "training.dispatcher");
}

void require_mega_can(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const ParallelSpec& layout = spec.parallel;
  Refusals refusals(Framework::mega);
  add_megatron_limits(refusals, spec);
  refusals.throw_if_any();
  // Megatron-FSDP wants CUDA_DEVICE_MAX_CONNECTIONS above 1, tensor and context parallelism want 1.
  refusals.add_if(layout.zero_stage >= 2 && (layout.tensor > 1 || layout.context > 1),
                  fmt::format("does not support ZeRO-{} together with TP {} and CP {}", layout.zero_stage,
                              layout.tensor, layout.context),
                  "set zero_stage to 0 or 1, or choose a strategy with TP 1 and CP 1");
  refusals.add_if(
      request.settings.fp8_param.value_or(false) && spec.precision == Precision::fp8 && layout.zero_stage == 0,
      "keeps fp8 weights only with its distributed optimizer", "set zero_stage to 1, or leave fp8_param out");
  refusals.add_if(spec.seed <= 0, "needs a seed above 0", "set training.general.seed to 1 or more");
  add_sparse_limits(refusals, spec);
  add_version_limits(refusals, request);
  refusals.throw_if_any();
}

// The settings under the names of arguments: a switch where they are true, nothing where they are false or null.
void add_settings(ArgumentList& list, const Json& settings) {
  for (const auto& [key, value] : settings.items()) {
    std::string flag = "--" + key;
    std::ranges::replace(flag, '_', '-');
    if (value.is_boolean() && value.get<bool>()) list.flag(flag.c_str());
    if (value.is_string()) list.add(flag.c_str(), value.text());
    if (value.is_number_float()) list.add(flag.c_str(), value.get<double>());
    if (value.is_number_integer()) list.add(flag.c_str(), value.get<int64_t>());
  }
}

void add_latent_attention(ArgumentList& list, const ModelSpec& model) {
  list.add("--num-attention-heads", model.num_attention_heads);
  list.add("--kv-channels", model.head_dim);
  add_settings(list, list_latent_attention_settings(model));
  list.flag_if(!has_fixed_yarn(model), "--no-rope-fusion");  // its kernel scales by YaRN
}

void add_attention(ArgumentList& list, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  if (model.latent_attention) return add_latent_attention(list, model);
  list.add("--num-attention-heads", model.num_attention_heads);
  list.add("--kv-channels", model.head_dim);
  if (model.num_key_value_heads != model.num_attention_heads) {
    list.flag("--group-query-attention");
    list.add("--num-query-groups", model.num_key_value_heads);
  }
  list.flag_if(model.qkv_bias && !model.linear_bias, "--add-qkv-bias");
  list.flag_if(model.qk_norm, "--qk-layernorm");
  if (model.attention_sinks.value_or(false)) list.add("--softmax-type", "learnable");
  if (!has_short_window(spec)) return;
  list.add("--window-size", fmt::format("{},0", *model.sliding_window - 1));
  if (const auto interval = full_attention_interval(model)) list.add("--window-attn-skip-freq", *interval);
}

void add_experts(ArgumentList& list, const TrainSpec& spec, const fs::path& checkout) {
  if (spec.model.prediction_layers) add_settings(list, list_prediction_settings(spec.model));
  if (!spec.model.experts) return;
  add_settings(list, list_expert_settings(spec));
  list.flag_if(has_biased_swiglu(spec.model), "--no-bias-swiglu-fusion");
  if (!has_flex_dispatcher(spec)) return;
  if (lacks_setting(checkout, k_flex_setting)) return list.flag("--moe-enable-deepep");  // HybridEP was refused
  list.add("--moe-flex-dispatcher-backend", enum_name(*spec.dispatcher));
}

void add_positions(ArgumentList& list, const ModelSpec& model) {
  list.add("--max-position-embeddings", model.max_position_embeddings);
  if (model.position == PositionKind::learned) return list.add("--position-embedding-type", "learned_absolute");
  list.add("--position-embedding-type", "rope");
  list.add("--rotary-base", std::llround(model.rope_theta));
  if (model.latent_attention || !model.rope_scaling || model.rope_scaling->type != RopeScalingKind::llama3) return;
  list.flag("--use-rope-scaling");
  list.add("--rope-scaling-factor", model.rope_scaling->factor);
}

void add_model(ArgumentList& list, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  list.add("--num-layers", model.num_layers);
  list.add("--hidden-size", model.hidden_size);
  list.add("--ffn-hidden-size", dense_ffn_width(model));
  add_attention(list, spec);
  add_positions(list, model);
  list.add("--normalization", model.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
  list.add("--norm-epsilon", model.norm_eps);
  list.flag_if(model.mlp == MlpKind::swiglu, "--swiglu");
  list.flag_if(!model.linear_bias, "--disable-bias-linear");
  list.flag_if(!model.tied_embeddings, "--untie-embeddings-and-output-weights");
  list.add("--attention-dropout", 0);
  list.add("--hidden-dropout", 0);
}

// NullTokenizer counts an end-of-document token beyond --vocab-size.
void add_data(ArgumentList& list, const TrainSpec& spec) {
  list.add("--tokenizer-type", "NullTokenizer");
  list.add("--vocab-size", spec.model.vocab_size - 1);
  list.add("--make-vocab-size-divisible-by", vocabulary_divisor(spec));
  if (spec.data.is_synthetic()) {
    list.flag("--mock-data");
  } else {
    list.add("--data-path", spec.data.dataset);
    list.add("--split", spec.data.split);
  }
  list.flag("--no-create-attention-mask-in-dataloader");
}

// ZeRO-1 is Megatron's distributed optimizer; 2 and 3 are Megatron-FSDP.
void add_sharding(ArgumentList& list, const ParallelSpec& layout) {
  if (layout.zero_stage == 0) return;
  list.flag("--use-distributed-optimizer");
  list.flag("--overlap-grad-reduce");
  list.flag("--overlap-param-gather");
  if (layout.zero_stage < 2) return;
  list.flag("--use-megatron-fsdp");
  list.add("--ckpt-format", "fsdp_dtensor");
  list.add("--data-parallel-sharding-strategy", layout.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
}

void add_layout(ArgumentList& list, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  list.add("--tensor-model-parallel-size", layout.tensor);
  list.add("--pipeline-model-parallel-size", layout.pipeline);
  list.add("--context-parallel-size", layout.context);
  if (layout.pipeline_layout)
    list.add("--pipeline-model-parallel-layout", *layout.pipeline_layout);  // VP follows from it
  else if (layout.virtual_pipeline > 1)
    list.add("--num-layers-per-virtual-pipeline-stage",
             layout.pipeline_units(spec.model.num_layers) / (layout.pipeline * layout.virtual_pipeline));
  list.flag_if(layout.ends_as_layers, "--account-for-embedding-in-pipeline-split");
  list.flag_if(layout.ends_as_layers, "--account-for-loss-in-pipeline-split");
  list.flag_if(layout.sequence_parallel && layout.tensor > 1, "--sequence-parallel");
  add_sharding(list, layout);
}

void add_recompute(ArgumentList& list, const TrainSpec& spec) {
  if (spec.recompute == Recompute::none) return;
  list.add("--recompute-granularity", enum_name(spec.recompute));
  if (spec.recompute_modules) list.flag("--recompute-modules");
  for (const std::string& name : list_recomputed_modules(spec)) list.flag(name.c_str());
  if (spec.recompute == Recompute::selective) return;
  list.add("--recompute-method", "uniform");
  list.add("--recompute-num-layers", 1);
}

void add_platform(ArgumentList& list, const LaunchRequest& request) {
  const PlatformSettings& settings = request.settings;
  if (request.spec.precision == Precision::fp8) {
    list.add("--fp8-format", settings.fp8_hybrid.value_or(true) ? "hybrid" : "e4m3");
    list.flag_if(settings.fp8_param.value_or(false), "--fp8-param-gather");
  }
  if (!settings.flash_attention) return;
  const bool sinks = request.spec.model.attention_sinks.value_or(false);  // which FlashAttention does not have
  list.add("--attention-backend", !*settings.flash_attention ? "unfused" : sinks ? "fused" : "flash");
}

// nsys: cudaProfilerStart after --profile-step-start updates, cudaProfilerStop after --profile-step-end. The PyTorch
// profiler records from the step --profile-step-start on, and writes its trace as the step --profile-step-end begins.
void add_profile(ArgumentList& list, const LaunchRequest& request) {
  if (!request.profile || request.profile->whole_run) return;
  const ProfileWindow& window = *request.profile;
  const bool torch = window.profiler == Profiler::torch;
  list.flag("--profile");
  list.add("--profile-step-start", torch ? window.first_step : window.first_step - 1);
  list.add("--profile-step-end", torch ? window.last_step + 1 : window.last_step);
  list.add("--profile-ranks", 0);
  if (!torch) return;
  list.flag("--use-pytorch-profiler");
  list.add("--tensorboard-dir", torch_trace_folder(request.paths));
}

// Without the second flag it would load the newest, without the third it would start anew where there is none, and
// without the last it would refuse a schedule other than the checkpoint's.
void add_load_arguments(ArgumentList& list, const CheckpointSpec& checkpoint) {
  if (!checkpoint.load) return;
  list.add("--load", *checkpoint.load);
  if (checkpoint.load_step.value_or(0) > 0) list.add("--ckpt-step", *checkpoint.load_step);
  list.flag("--exit-on-missing-checkpoint");
  list.flag("--override-opt-param-scheduler");
}

std::vector<std::string> make_arguments(const LaunchRequest& request, const std::string& checkpoints) {
  const TrainSpec& spec = request.spec;
  ArgumentList list;
  add_model(list, spec);
  add_experts(list, spec, mega_place(request.checkout));
  add_batch_arguments(list, spec);
  add_optimizer_arguments(list, spec);
  add_precision_arguments(list, spec);
  add_data(list, spec);
  add_layout(list, spec);
  add_recompute(list, spec);
  add_platform(list, request);
  add_evaluation_arguments(list, spec);
  add_checkpoint_arguments(list, spec, checkpoints);
  add_load_arguments(list, spec.checkpoint);
  list.add("--log-interval", 1);
  list.flag("--log-throughput");
  list.flag_if(spec.anomalies.not_finite != OnAnomaly::stop, "--no-check-for-nan-in-loss-and-grad");
  list.add("--distributed-timeout-minutes", 10);
  add_profile(list, request);
  return std::move(list).take();
}

// The command line supports only the scaling of Llama 3.1, and --rope-scaling-factor is parsed but not passed on: 8 is
// used (https://github.com/NVIDIA/Megatron-LM/issues/6305).
void add_rope_deviation(std::vector<Deviation>& list, const ModelSpec& model) {
  if (!model.rope_scaling || has_fixed_yarn(model)) return;
  if (model.latent_attention)
    return list.push_back({"rope_scaling", describe_rope_scaling(model.rope_scaling), "none"});
  RopeScaling llama;
  llama.factor = 8.0;
  if (*model.rope_scaling == llama) return;
  const bool same_rule = model.rope_scaling->type == RopeScalingKind::llama3;
  list.push_back(
      {"rope_scaling", describe_rope_scaling(model.rope_scaling), same_rule ? describe_rope_scaling(llama) : "none"});
}

std::vector<Deviation> list_deviations(const TrainSpec& spec) {
  std::vector<Deviation> list;
  add_schedule_deviation(list, spec.optimizer);
  add_rope_deviation(list, spec.model);
  if (const double theta = spec.model.rope_theta; theta != std::round(theta))
    list.push_back({"rope_theta", fmt::format("{}", theta), fmt::format("{}", std::llround(theta))});
  if (spec.data.is_synthetic()) add_mock_data_deviation(list);
  return list;
}

std::optional<Installation> find_mega(const Checkout& checkout) {
  auto installation = find_pretrain_script(mega_place(checkout));
  if (!installation) return std::nullopt;
  if (auto version = read_megatron_version(installation->place)) installation->version = *version;
  return installation;
}

TrainProgram plan_mega(const LaunchRequest& asked) {
  const LaunchRequest request = with_absolute_dataset(asked);
  require_mega_can(request);
  TrainProgram program = run_pretrain_script(Framework::mega, mega_place(request.checkout), request);
  append(program.arguments, make_arguments(request, program.checkpoints_path));
  if (request.spec.parallel.zero_stage < 2) program.environment.emplace("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  program.deviations = list_deviations(request.spec);
  return program;
}

}  // namespace

// Megatron-LM: pretrain_gpt.py of a checkout (`paths.megatron`, MEGATRON_PATH), under torchrun. The steps are read from
// its log.
FrameworkModule mega_module() {
  FrameworkModule module = {Framework::mega,
                            "Megatron-LM",
                            {Platform::nvd, Platform::amd},
                            find_mega,
                            plan_mega,
                            "set paths.megatron.installation or MEGATRON_PATH to its checkout",
                            "megatron",
                            {Profiler::nsys, Profiler::torch, Profiler::rocprofv3}};
  module.takes_arguments = true;
  module.unmarked = {Profiler::rocprofv3};  // on ROCm, PyTorch's cudaProfilerStart does nothing
  module.find_checkpoint = find_megatron_checkpoint;
  // The model and data of Megatron Core 0.16.1, the flags of these commits.
  module.checked = {"Megatron-LM", {"0.16.1", "000c4ac24f61", "8c090f2a7f11"}};
  module.trains_in = [](Precision precision, Platform) { return precision != Precision::tf32; };
  return module;
}

}  // namespace tprimat::suite
