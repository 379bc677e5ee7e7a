#include "extract/dialects/metric_names.h"

#include <algorithm>
#include <string>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

using S = ExtractedStep;
constexpr double k_gib_in_gb = k_gib / 1e9;

constexpr StepMetric k_metrics[] = {{"loss", &S::loss},
                                    {"train/loss", &S::loss},
                                    {"train_loss", &S::loss},
                                    {"train_loss_step", &S::loss},
                                    {"train/loss_step", &S::loss},
                                    {"loss/train", &S::loss},
                                    {"loss/train/total", &S::loss},
                                    {"training_loss", &S::loss},
                                    {"training/loss", &S::loss},
                                    {"training loss", &S::loss},
                                    {"reduced_train_loss", &S::loss},
                                    {"lm loss", &S::loss},
                                    {"lm_loss", &S::loss},
                                    {"train/lm_loss", &S::loss},
                                    {"lm-loss-training/lm loss", &S::loss},
                                    {"loss_metrics/global_avg_loss", &S::loss},
                                    {"lr", &S::learning_rate},
                                    {"train/lr", &S::learning_rate},
                                    {"learning_rate", &S::learning_rate},
                                    {"learning-rate", &S::learning_rate},
                                    {"train/learning_rate", &S::learning_rate},
                                    {"learning-rate/learning-rate", &S::learning_rate},
                                    {"grad_norm", &S::grad_norm},
                                    {"grad-norm", &S::grad_norm},
                                    {"gradient_norm", &S::grad_norm},
                                    {"train/grad_norm", &S::grad_norm},
                                    {"grad-norm/grad-norm", &S::grad_norm},
                                    {"l2_norm/grad/global", &S::grad_norm},
                                    {"loss-scale", &S::loss_scale},
                                    {"loss_scale", &S::loss_scale},
                                    {"train/loss_scale", &S::loss_scale},
                                    {"batch-size", &S::global_batch_size},
                                    {"batch-size/batch-size", &S::global_batch_size},
                                    {"global_batch_size", &S::global_batch_size},
                                    {"consumed_samples", &S::samples_seen},
                                    {"ntokens_seen", &S::tokens_seen},
                                    {"n_tokens_seen", &S::tokens_seen},
                                    {"consumed_tokens", &S::tokens_seen},
                                    {"train/num_input_tokens_seen", &S::tokens_seen},
                                    {"iteration-time", &S::time_seconds},
                                    {"iteration_time", &S::time_seconds},
                                    {"iteration-time/iteration-time", &S::time_seconds},
                                    {"step_time", &S::time_seconds},
                                    {"train/step_time", &S::time_seconds},
                                    {"train/seconds_per_step", &S::time_seconds},
                                    {"step_time_seconds", &S::time_seconds},
                                    {"time_seconds", &S::time_seconds},
                                    {"train_step_timing in s", &S::time_seconds},
                                    {"train_step_timing", &S::time_seconds},
                                    {"time_metrics/end_to_end(s)", &S::time_seconds},
                                    {"step_time_ms", &S::time_seconds, 1e-3},
                                    {"iteration_time_ms", &S::time_seconds, 1e-3},
                                    {"time_per_iteration_ms", &S::time_seconds, 1e-3},
                                    {"elapsed_time_per_iteration_ms", &S::time_seconds, 1e-3},
                                    {"wps", &S::tokens_per_second_per_gpu},
                                    {"throughput(tps)", &S::tokens_per_second_per_gpu},
                                    {"tokens_per_sec_per_gpu", &S::tokens_per_second_per_gpu},
                                    {"tokens_per_second_per_gpu", &S::tokens_per_second_per_gpu},
                                    {"throughput/device/tokens_per_sec", &S::tokens_per_second_per_gpu},
                                    {"tokens_per_sec", &S::tokens_per_second},
                                    {"tokens_per_second", &S::tokens_per_second},
                                    {"train/tokens_per_second", &S::tokens_per_second},
                                    {"throughput/tokens_per_sec", &S::tokens_per_second},
                                    {"throughput/samples_per_sec", &S::samples_per_second},
                                    {"tflops", &S::tflops_per_gpu},
                                    {"model_tflops_per_gpu", &S::tflops_per_gpu},
                                    {"mfu(%)", &S::mfu, 0.01},
                                    {"throughput/device/mfu", &S::mfu},
                                    {"memory/max_reserved(gib)", &S::memory_reserved_gb, k_gib_in_gb},
                                    {"memory_allocated_gb", &S::memory_allocated_gb},
                                    {"memory/allocated_gb", &S::memory_allocated_gb},
                                    {"power/watts_per_gpu", &S::power_watts_per_gpu},
                                    {"memory_reserved_gb", &S::memory_reserved_gb}};

constexpr std::string_view k_evaluation_losses[] = {"validation_metrics/loss",
                                                    "eval/loss",
                                                    "eval_loss",
                                                    "val_loss",
                                                    "val/loss",
                                                    "loss/val",
                                                    "valid_loss",
                                                    "validation_loss",
                                                    "validation/loss",
                                                    "lm loss validation",
                                                    "lm-loss-validation/lm loss validation"};

constexpr std::string_view k_step_names[] = {"step",
                                             "_step",
                                             "steps",
                                             "iteration",
                                             "iter",
                                             "global_step",
                                             "global step",
                                             "trainer/global_step",
                                             "train/global_step"};

std::string lower_case(std::string_view text) {
  std::string lower(trim(text));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

template <size_t N>
bool is_one_of(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), lower_case(name)) != std::end(names);
}

}  // namespace

const StepMetric* find_step_metric(std::string_view name) {
  static constexpr StepMetric k_named_rate{"lr-", &S::learning_rate};  // Lightning's monitor: "lr-AdamW/pg1"
  const std::string lower = lower_case(name);
  for (const StepMetric& metric : k_metrics)
    if (metric.name == lower) return &metric;
  return lower.substr(0, 3) == "lr-" ? &k_named_rate : nullptr;
}

bool is_evaluation_loss(std::string_view name) { return is_one_of(k_evaluation_losses, name); }

bool is_step_name(std::string_view name) { return is_one_of(k_step_names, name); }

bool is_clock_name(std::string_view name) {
  const std::string lower = lower_case(name);
  return lower == "_timestamp" || lower == "unix_time" || lower == "wall time" || lower == "wall_time";
}

void set_step_metric(ExtractedStep& record, const StepMetric& metric, double value) {
  const bool is_time = metric.member == &S::time_seconds;
  if (record.*metric.member || (is_time && !(value > 0))) return;  // the first column of a meaning stays
  record.*metric.member = value * metric.factor;
  if (is_time) record.time_source = TimeSource::printed;
}

}  // namespace tprimat::logs
