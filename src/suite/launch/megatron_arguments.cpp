#include "launch/megatron_arguments.h"

#include "base/error.h"

namespace tprimat::suite {

void add_batch_arguments(ArgumentList& list, const TrainSpec& spec) {
  list.add("--micro-batch-size", spec.micro_batch_size);
  list.add("--global-batch-size", spec.global_batch_size);
  list.add("--seq-length", spec.sequence_length);
  list.add("--train-iters", spec.steps);
  list.add("--seed", spec.seed);
}

// Megatron's adam has decoupled decay, which norms and biases are spared.
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

// Both count the updates that are done: cudaProfilerStart at --profile-step-start of them, cudaProfilerStop at
// --profile-step-end.
void add_profile_arguments(ArgumentList& list, const std::optional<ProfileWindow>& window) {
  if (!window) return;
  list.flag("--profile");
  list.add("--profile-step-start", window->first_step - 1);
  list.add("--profile-step-end", window->last_step);
  list.add("--profile-ranks", 0);
}

void require_megatron_can(Framework framework, const TrainSpec& spec) {
  std::vector<Problem> problems;
  const auto refuse = [&](std::string what, std::string hint) {
    problems.push_back({fmt::format("the framework '{}' {}", enum_name(framework), what), "", std::move(hint)});
  };
  if (spec.precision == Precision::tf32) refuse("has no option for tf32", "choose bf16, fp16, fp8 or fp32");
  if (!spec.checkpoint.initial_weights.empty())
    refuse("cannot start from Hugging Face weights: it reads only its own checkpoints",
           "leave initial_weights out for random weights");
  if (spec.model.num_experts) refuse("trains dense models only", "choose a model without experts");
  throw_if_any(std::move(problems));
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

}  // namespace tprimat::suite
