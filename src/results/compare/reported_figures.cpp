#include "compare/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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
std::optional<Bounds> conventions_of(const RunResult& run) {
  constexpr double k_without_embeddings = 0.6, k_with_recompute = 1.6, k_with_frozen = 1.5;
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  const auto& flops = run.derived.flops_per_token;
  if (!rate || flops.empty()) return std::nullopt;
  const auto [least, most] =
      std::ranges::minmax_element(flops, [](const auto& a, const auto& b) { return a.second < b.second; });
  Bounds bounds{rate->value * least->second * k_without_embeddings, rate->value * most->second * k_with_recompute};
  if (run.model_info.trainable_parameters) bounds.most *= k_with_frozen;
  if (const auto& shape = run.model_info.shape; shape && shape->experts)
    bounds.most *= static_cast<double>(shape->experts->count) / static_cast<double>(shape->experts->per_token);
  return bounds;
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
  if (std::ranges::any_of(peaks, [&](double each) { return bounds->hold(*mfu * each); })) return std::nullopt;
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

}  // namespace tprimat::results
