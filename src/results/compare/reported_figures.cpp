#include "compare/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compare/expert_facts.h"
#include "result/peak.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

using Gap = std::optional<std::string>;

// Of the steady steps.
std::optional<double> usual_report(const RunResult& run, const std::optional<std::vector<double>>& series) {
  if (!series) return std::nullopt;
  std::vector<double> values;
  for (auto i = static_cast<size_t>(std::max<int64_t>(1, run.warmup.steps_excluded)); i < series->size(); ++i)
    if (std::isfinite((*series)[i])) values.push_back((*series)[i]);
  if (values.empty()) return std::nullopt;
  const double usual = median(values);
  return usual > 0 ? std::optional(usual) : std::nullopt;
}

// Both count the same tokens, so they differ only by mean against median or a running average.
Gap compare_rate(const char* what, const std::optional<double>& reported, const std::optional<double>& derived) {
  constexpr double k_max = 1.3;
  if (!reported || !derived || !(*derived > 0)) return std::nullopt;
  const double ratio = *reported / *derived;
  if (ratio <= k_max && ratio >= 1 / k_max) return std::nullopt;
  return fmt::format("the framework reports {} {}, batch and step times give {}", format_significant(*reported, 4),
                     what, format_significant(*derived, 4));
}

std::optional<double> value_of(const std::optional<Estimate>& estimate) {
  return estimate ? std::optional(estimate->value) : std::nullopt;
}

std::optional<double> sequences_per_second(const RunResult& run) {
  const auto& rate = run.derived.tokens_per_second;
  const auto tokens = tokens_per_step(run);
  const auto& batch = run.training_config.global_batch_size;
  if (!rate || !tokens || !batch) return std::nullopt;
  return rate->value * static_cast<double>(*batch) / static_cast<double>(*tokens);
}

struct Bounds {
  double least = 0, most = 0;  // FLOP/s of a device, by any convention
  bool hold(double value) const { return value >= least && value <= most; }
};

// Least: a small model without embeddings. Most: every layer computed again.
constexpr double k_without_embeddings = 0.6, k_with_recompute = 1.6;

std::optional<Bounds> conventions_of(const RunResult& run) {
  constexpr double k_with_frozen = 1.5;
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  const auto& flops = run.derived.flops_per_token;
  if (!rate || flops.empty()) return std::nullopt;
  const auto [least, most] =
      std::ranges::minmax_element(flops, [](const auto& a, const auto& b) { return a.second < b.second; });
  Bounds bounds{rate->value * least->second * k_without_embeddings, rate->value * most->second * k_with_recompute};
  if (run.model_info.trainable_parameters) bounds.most *= k_with_frozen;
  return bounds;
}

// Of a program that knows dense models only: each token passes all experts, or 6 FLOPs for each parameter.
std::optional<Bounds> dense_conventions_of(const RunResult& run) {
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  const auto& shape = run.model_info.shape;
  const int64_t length = run.training_config.sequence_length.value_or(0);
  if (!rate || !shape || !shape->experts || length <= 0 || !check_model(*shape, "").empty()) return std::nullopt;
  const double causal = flops_per_token(with_all_experts(*shape), length, FlopFormula::causal),
               full = flops_per_token(with_all_experts(*shape), length, FlopFormula::full),
               by_count = 6 * static_cast<double>(count_parameters(*shape).total());
  return Bounds{rate->value * std::min(causal, by_count) * k_without_embeddings,
                rate->value * std::max(full, by_count) * k_with_recompute};
}

// Beyond all conventions that count what a token passes, within those that do not.
bool is_dense_count(const RunResult& run, double flops) {
  const auto active = conventions_of(run), dense = dense_conventions_of(run);
  return active && dense && flops > active->most && dense->hold(flops);
}

// The dense peak of the run's device and precision; of all its precisions if unknown.
std::optional<double> highest_peak(const RunResult& run) {
  if (run.precision && *run.precision != Precision::fp32)  // fp32 may be tf32
    if (const auto peak = catalogue_peak(run.gpu_info.device_name, *run.precision)) return peak->flops_per_second;
  const auto part = find_hardware(run.gpu_info.device_name);
  if (!part || part->dense_peak_flops.empty()) return std::nullopt;
  double highest = 0;
  for (const auto& [precision, peak] : part->dense_peak_flops) highest = std::max(highest, peak);
  return highest;
}

std::string tera(double flops) { return format_significant(flops / 1e12, 4) + " TFLOP/s per device"; }

// The peak of the device that the framework divides by, where it prints both figures.
std::optional<double> peak_of_framework(const RunResult& run, double flops) {
  constexpr double k_same = 0.02;
  const auto mfu = usual_report(run, run.reported->mfu);
  const auto part = find_hardware(run.gpu_info.device_name);
  if (!mfu || !part) return std::nullopt;
  for (const auto& [precision, peak] : part->dense_peak_flops)
    if (std::fabs(flops / *mfu / peak - 1) <= k_same) return peak;
  return std::nullopt;
}

Gap compare_flops(const RunResult& run) {
  const auto reported = run.reported ? usual_report(run, run.reported->tflops_per_gpu) : std::nullopt;
  if (!reported) return std::nullopt;
  const double flops = *reported * 1e12;
  if (is_dense_count(run, flops)) return std::nullopt;
  const auto peak = run.precision ? std::nullopt : peak_of_framework(run, flops);
  if (const auto highest = peak ? peak : highest_peak(run); highest && flops > *highest)
    return fmt::format("the framework reports {}, the device's peak is {}", tera(flops), tera(*highest));
  const auto bounds = conventions_of(run);
  if (!bounds || bounds->hold(flops)) return std::nullopt;
  const auto& ours = run.derived.tflops_per_gpu;
  return fmt::format("the framework reports {}, model, batch and step times give {}", tera(flops),
                     tera(ours ? ours->value * 1e12 : bounds->least));
}

// Some programs divide by the peak of an A100 whatever the device, others by that of sparse products.
Gap compare_mfu(const RunResult& run) {
  constexpr double k_a100 = 312e12, k_sparse = 2;
  const auto mfu = run.reported ? usual_report(run, run.reported->mfu) : std::nullopt;
  const auto peak = highest_peak(run);
  const auto bounds = conventions_of(run);
  if (!mfu || !peak || !bounds) return std::nullopt;
  std::vector<double> peaks = {*peak, *peak * k_sparse, k_a100};
  if (run.derived.peak) peaks.push_back(run.derived.peak->flops_per_second);
  const auto holds = [&](double each) { return bounds->hold(*mfu * each) || is_dense_count(run, *mfu * each); };
  if (std::ranges::any_of(peaks, holds)) return std::nullopt;
  return fmt::format("the framework reports an MFU of {}, model, batch and step times give {}", format_percent(*mfu),
                     format_percent(run.derived.tflops_per_gpu ? run.derived.tflops_per_gpu->value * 1e12 / *peak
                                                               : bounds->least / *peak));
}

}  // namespace

std::optional<std::string> describe_reported_gap(const RunResult& run) {
  if (!run.reported) return std::nullopt;
  const ReportedFigures& reported = *run.reported;
  const Derived& derived = run.derived;
  const Gap gaps[] = {
      compare_rate("tokens/s", usual_report(run, reported.tokens_per_second), value_of(derived.tokens_per_second)),
      compare_rate("tokens/s per device", usual_report(run, reported.tokens_per_second_per_gpu),
                   value_of(derived.tokens_per_second_per_gpu)),
      compare_rate("sequences/s", usual_report(run, reported.samples_per_second), sequences_per_second(run)),
      compare_flops(run), compare_mfu(run)};
  for (const Gap& gap : gaps)
    if (gap) return gap;
  return std::nullopt;
}

std::optional<std::string> describe_dense_count(const RunResult& run) {
  const auto& ours = run.derived.tflops_per_gpu;
  if (!run.reported || !ours) return std::nullopt;
  if (const auto reported = usual_report(run, run.reported->tflops_per_gpu)) {
    if (!is_dense_count(run, *reported * 1e12)) return std::nullopt;
    return fmt::format("it reports {}, the active experts give {}", tera(*reported * 1e12), tera(ours->value * 1e12));
  }
  const auto mfu = usual_report(run, run.reported->mfu);
  const auto peak = highest_peak(run);
  if (!mfu || !peak || !is_dense_count(run, *mfu * *peak)) return std::nullopt;
  return fmt::format("it reports an MFU of {}, the active experts give {}", format_percent(*mfu),
                     format_percent(ours->value * 1e12 / *peak));
}

}  // namespace tprimat::results
