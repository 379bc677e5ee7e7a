#include "launch/megatron.h"

#include <fmt/format.h>

#include "launch/expert_settings.h"
#include "launch/installed.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_other_weights =
    "leave initial_weights out for random weights, or choose the framework native, tran, fsdp or deep";

// Megatron Core's RotaryEmbedding holds these three of Llama 3.1 as constants.
bool is_llama31_scaling(const RopeScaling& scaling) {
  return scaling.low_freq_factor == 1.0 && scaling.high_freq_factor == 4.0 &&
         scaling.original_max_position_embeddings == 8192;
}

void check_model_limits(const TrainSpec& spec, Refusals& refusals) {
  const ModelSpec& model = spec.model;
  add_sparse_limits(refusals, spec);
  refusals.add_if(model.latent_attention && model.rope_scaling && !has_fixed_yarn(model),
                  "scales the rotary positions of multi-head latent attention only by yarn with "
                  "original_max_position_embeddings 4096, beta_fast 32, beta_slow 1",
                  "set these values, or leave rope_scaling out of the model");
  if (const auto& scaling = model.rope_scaling; scaling && !model.latent_attention) {
    refusals.add_if(scaling->type == RopeScalingKind::yarn, "supports rope_scaling llama3 and linear, not yarn",
                    "choose the framework native, tran, fsdp or deep, or another rope_scaling of the model");
    refusals.add_if(scaling->type == RopeScalingKind::llama3 && !is_llama31_scaling(*scaling),
                    "supports llama3 rope_scaling only with the values of Llama 3.1: low_freq_factor 1, "
                    "high_freq_factor 4, original_max_position_embeddings 8192",
                    "set these values, or choose the framework native, tran, fsdp or deep");
  }
  refusals.add_if(model.position == PositionKind::learned && model.max_position_embeddings != spec.sequence_length,
                  fmt::format("learns one position per token of a sequence, here {}, but the model has {}",
                              spec.sequence_length, model.max_position_embeddings),
                  fmt::format("set training.data.seq_length to {}, or the model's max_position_embeddings to {}",
                              model.max_position_embeddings, spec.sequence_length));
}

void check_layout_limits(Framework framework, const TrainSpec& spec, Refusals& refusals) {
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(layout.zero_stage > 1, fmt::format("does not support ZeRO-{}", layout.zero_stage),
                  "set zero_stage to 0 or 1");
  refusals.add_if(layout.ends_as_layers && framework == Framework::prim,
                  "cannot count the embedding and the loss as layers",
                  "choose a strategy without embedding_and_loss_as_layers, or the framework mega");
  refusals.add_if(layout.context > 1 && spec.sequence_length % (2 * layout.context) != 0,
                  fmt::format("splits a sequence into 2·CP parts, but {} tokens do not divide into {} equal ones",
                              spec.sequence_length, 2 * layout.context),
                  fmt::format("set training.data.seq_length to a multiple of {}, or choose a strategy with another CP",
                              2 * layout.context));
  refusals.add_if(has_short_window(spec) && layout.context > 1,
                  "does not support a sliding window with context parallelism", "choose a strategy with CP 1");
  refusals.add_if(!spec.checkpoint.initial_weights.empty(), "starts from random weights only", k_other_weights);
}

}  // namespace

void add_batch_arguments(ArgumentList& list, const TrainSpec& spec) {
  list.add("--micro-batch-size", spec.micro_batch_size);
  list.add("--global-batch-size", spec.global_batch_size);
  list.add("--seq-length", spec.sequence_length);
  list.add("--train-iters", spec.steps);
  list.add("--seed", spec.seed);
}

// Megatron's adam has decoupled decay, except for norms and biases.
void add_optimizer_arguments(ArgumentList& list, const TrainSpec& spec) {
  const OptimizerSpec& optimizer = spec.optimizer;
  list.add("--optimizer", "adam");
  list.add("--lr", optimizer.learning_rate);
  list.add("--min-lr", optimizer.min_learning_rate);
  list.add("--lr-decay-style", enum_name(optimizer.schedule));
  list.add("--lr-decay-iters", spec.steps);
  list.add("--lr-warmup-iters", optimizer.warmup_steps);
  list.add("--adam-beta1", optimizer.beta1);
  list.add("--adam-beta2", optimizer.beta2);
  list.add("--adam-eps", optimizer.epsilon);
  list.add("--weight-decay", optimizer.weight_decay);
  list.add("--clip-grad", optimizer.clip_grad_norm);
}

void add_precision_arguments(ArgumentList& list, const TrainSpec& spec) {
  if (spec.precision == Precision::bf16 || spec.precision == Precision::fp8) list.flag("--bf16");
  if (spec.precision != Precision::fp16) return;
  list.flag("--fp16");
  list.add("--initial-loss-scale", spec.loss_scale.initial);
  list.add("--min-loss-scale", spec.loss_scale.minimum);
  list.add("--loss-scale-window", spec.loss_scale.window);
  list.add("--hysteresis", 1);  // the first overflow halves the scale
}

void add_evaluation_arguments(ArgumentList& list, const TrainSpec& spec) {
  const bool evaluates = spec.evaluation.interval > 0;
  list.add("--eval-interval", evaluates ? spec.evaluation.interval : spec.steps + 1);
  list.add("--eval-iters", evaluates ? spec.evaluation.batches : 0);
}

void add_checkpoint_arguments(ArgumentList& list, const TrainSpec& spec, const std::string& folder) {
  if (spec.checkpoint.directory.empty()) return;
  list.add("--save", folder);
  list.add("--save-interval", spec.checkpoint.save_interval > 0 ? spec.checkpoint.save_interval : spec.steps);
}

std::optional<Installation> find_pretrain_script(const fs::path& folder) {
  std::error_code unreadable;
  if (!fs::exists(folder / k_pretrain_script, unreadable)) return std::nullopt;
  return Installation{find_checkout_revision(folder).value_or(std::string(k_unknown_version)), folder.string()};
}

TrainProgram run_pretrain_script(Framework framework, const fs::path& folder, const LaunchRequest& request) {
  TrainProgram program;
  program.python = python_for(framework);
  program.start = RankStart::torchrun;
  program.arguments = {(folder / k_pretrain_script).string()};
  program.environment = {{"PYTHONUNBUFFERED", "1"}};
  program.working_directory = folder.string();
  if (const std::string& directory = request.spec.checkpoint.directory; !directory.empty())
    program.checkpoints_path = (fs::path(request.paths.folder) / directory).string();
  return program;
}

LaunchRequest with_absolute_dataset(LaunchRequest request) {
  DataSpec& data = request.spec.data;
  if (!data.is_synthetic())
    data.dataset = (fs::path(request.paths.working_directory) / data.dataset).lexically_normal().string();
  return request;
}

void add_megatron_limits(Refusals& refusals, const TrainSpec& spec) {
  refusals.add_if(spec.precision == Precision::tf32, "has no option for tf32", "choose bf16, fp16, fp8 or fp32");
  refusals.add_if(!spec.checkpoint.initial_weights.empty(),
                  "cannot start from Hugging Face weights: it reads only its own checkpoints", k_other_weights);
}

std::string describe_rope_scaling(const std::optional<RopeScaling>& scaling) {
  if (!scaling) return "none";
  std::string text = fmt::format("{} x {} of {}", enum_name(scaling->type), scaling->factor,
                                 scaling->original_max_position_embeddings);
  if (scaling->type == RopeScalingKind::llama3)
    text += fmt::format(" ({} to {})", scaling->low_freq_factor, scaling->high_freq_factor);
  return text;
}

void add_schedule_deviation(std::vector<Deviation>& list, const OptimizerSpec& optimizer) {
  if (optimizer.schedule == ScheduleKind::constant && optimizer.warmup_steps == 0) return;
  list.push_back({"schedule_timing", "step s at the rate of s", "step s at the rate of s - 1"});
}

void add_mock_data_deviation(std::vector<Deviation>& list) {
  list.push_back({"dataset", "the native trainer's synthetic data", "Megatron's mock data"});
}

int64_t vocabulary_divisor(const TrainSpec& spec) { return spec.precision == Precision::fp8 ? 16 : 1; }

bool has_short_window(const TrainSpec& spec) {
  return spec.model.sliding_window && *spec.model.sliding_window < spec.sequence_length;
}

bool shares_optimizer(const TrainSpec& spec, const std::optional<bool>& fp8_param) {
  return spec.parallel.zero_stage > 0 || (spec.precision == Precision::fp8 && fp8_param.value_or(false));
}

void add_megatron_core_limits(Refusals& refusals, Framework framework, const TrainSpec& spec) {
  check_model_limits(spec, refusals);
  check_layout_limits(framework, spec, refusals);
}

}  // namespace tprimat::suite
