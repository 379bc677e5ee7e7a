#include "extract/dialects/metric_names.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "extract/scan_text.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

using S = ExtractedStep;
constexpr double k_gib_in_gb = k_gib / 1e9;

const std::vector<StepMetric> k_metrics = {
    {&S::loss,
     1,
     {"loss", "train/loss", "train_loss", "train_loss_step", "train/loss_step", "loss/train", "loss/train/total",
      "training_loss", "training/loss", "training loss", "reduced_train_loss", "lm loss", "lm_loss", "train/lm_loss",
      "lm-loss-training/lm loss", "loss_metrics/global_avg_loss"}},
    {&S::learning_rate,
     1,
     {"lr", "train/lr", "learning_rate", "learning-rate", "train/learning_rate", "learning-rate/learning-rate"}},
    {&S::grad_norm,
     1,
     {"grad_norm", "grad-norm", "gradient_norm", "train/grad_norm", "grad-norm/grad-norm", "l2_norm/grad/global"}},
    {&S::loss_scale, 1, {"loss-scale", "loss_scale", "train/loss_scale"}},
    {&S::global_batch_size, 1, {"batch-size", "batch-size/batch-size", "global_batch_size"}},
    {&S::samples_seen, 1, {"consumed_samples"}},
    {&S::tokens_seen, 1, {"ntokens_seen", "n_tokens_seen", "consumed_tokens", "train/num_input_tokens_seen"}},
    {&S::time_seconds,
     1,
     {"iteration-time", "iteration_time", "iteration-time/iteration-time", "step_time", "train/step_time",
      "train/seconds_per_step", "step_time_seconds", "time_seconds", "train_step_timing in s", "train_step_timing",
      "time_metrics/end_to_end(s)"}},
    {&S::time_seconds,
     1e-3,
     {"step_time_ms", "iteration_time_ms", "time_per_iteration_ms", "elapsed_time_per_iteration_ms"}},
    {&S::tokens_per_second_per_gpu,
     1,
     {"wps", "throughput(tps)", "tokens_per_sec_per_gpu", "tokens_per_second_per_gpu",
      "throughput/device/tokens_per_sec"}},
    {&S::tokens_per_second,
     1,
     {"tokens_per_sec", "tokens_per_second", "train/tokens_per_second", "throughput/tokens_per_sec"}},
    {&S::samples_per_second, 1, {"throughput/samples_per_sec"}},
    {&S::tflops_per_gpu, 1, {"tflops", "model_tflops_per_gpu"}},
    {&S::mfu, 0.01, {"mfu(%)"}},
    {&S::mfu, 1, {"throughput/device/mfu"}},
    {&S::memory_reserved_gb, k_gib_in_gb, {"memory/max_reserved(gib)"}},
    {&S::memory_allocated_gb, 1, {"memory_allocated_gb", "memory/allocated_gb"}},
    {&S::power_watts_per_gpu, 1, {"power/watts_per_gpu"}},
    {&S::memory_reserved_gb, 1, {"memory_reserved_gb"}},
};

bool is_one_of(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), lower_case(trim(name))) != names.end();
}

}  // namespace

const StepMetric* find_step_metric(std::string_view name) {
  static const StepMetric k_named_rate{&S::learning_rate, 1, {}};  // Lightning's monitor: "lr-AdamW/pg1"
  const std::string lower = lower_case(trim(name));
  for (const StepMetric& metric : k_metrics)
    if (std::find(metric.names.begin(), metric.names.end(), lower) != metric.names.end()) return &metric;
  return lower.starts_with("lr-") ? &k_named_rate : nullptr;
}

bool is_evaluation_loss(std::string_view name) {
  return is_one_of(
      {"validation_metrics/loss", "eval/loss", "eval_loss", "val_loss", "val/loss", "loss/val", "valid_loss",
       "validation_loss", "validation/loss", "lm loss validation", "lm-loss-validation/lm loss validation"},
      name);
}

bool is_step_name(std::string_view name) {
  return is_one_of({"step", "_step", "steps", "iteration", "iter", "global_step", "global step", "trainer/global_step",
                    "train/global_step"},
                   name);
}

bool is_clock_name(std::string_view name) {
  return is_one_of({"_timestamp", "unix_time", "wall time", "wall_time"}, name);
}

void set_step_metric(ExtractedStep& record, const StepMetric& metric, double value) {
  const bool is_time = metric.member == &S::time_seconds;
  if (record.*metric.member || (is_time && !(value > 0))) return;  // the first column of a meaning stays
  record.*metric.member = value * metric.factor;
  if (is_time) record.time_source = TimeSource::printed;
}

}  // namespace tprimat::logs
