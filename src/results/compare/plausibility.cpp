#include "compare/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>

#include "result/peak.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

std::string_view stack_of(Platform platform) {
  return platform == Platform::nvd ? "cuda" : platform == Platform::amd ? "rocm" : "cpu";
}

// By the catalogue, else by the vendor that the name begins with; AMD's processors are not GPUs.
std::optional<Platform> platform_of_device(const std::string& name) {
  if (const auto part = find_hardware(name)) return part->platform;
  if (name.starts_with("NVIDIA ") || name.starts_with("Tesla ")) return Platform::nvd;
  if (name.starts_with("AMD Instinct ") || name.starts_with("AMD Radeon ")) return Platform::amd;
  return std::nullopt;
}

// GB; drivers count more than the datasheet's figure, which is in GiB for some parts.
std::optional<double> memory_of_device(const RunResult& run) {
  constexpr double k_gib_per_gb = 1.0737;
  if (run.gpu_info.total_memory_gb) return run.gpu_info.total_memory_gb;
  const auto part = find_hardware(run.gpu_info.device_name);
  if (!part || !part->memory_bytes) return std::nullopt;
  return *part->memory_bytes / 1e9 * k_gib_per_gb;
}

// GB; a quarter of a byte for each parameter that a device holds of fully divided weights: a model of 4-bit numbers
// needs twice that for its weights alone.
std::optional<double> least_memory(const RunResult& run) {
  constexpr double k_bytes = 0.25;
  const auto& shape = run.model_info.shape;
  const auto devices = device_count(run);
  if (!shape || !devices || !check_model(*shape, "").empty()) return std::nullopt;
  return static_cast<double>(count_parameters(*shape).total()) * k_bytes / static_cast<double>(*devices) / 1e9;
}

std::string gigabytes(double gb) { return format_gb(gb * 1e9); }

void compare_with_device(const RunResult& run, Evidences& evidence) {
  constexpr double k_rounding = 1.02;
  const MemoryMetrics& memory = run.memory_metrics;
  const auto device = memory_of_device(run);
  for (const auto& [what, gb] :
       {std::pair{"allocated", memory.peak_memory_allocated_gb}, std::pair{"reserved", memory.peak_memory_reserved_gb},
        std::pair{"in use", memory.peak_device_used_gb}}) {
    const bool is_of_device = run.platform != Platform::cpu;  // a processor's ranks share the machine's memory
    const auto least = least_memory(run);
    if (gb && *gb > 0 && least && *gb < *least)
      evidence.push_back({what, gigabytes(*gb), gigabytes(*least) + " at least"});
    if (gb && *gb <= 0) evidence.push_back({what, gigabytes(*gb), "above 0 GB"});
    if (gb && device && is_of_device && *gb > *device * k_rounding)
      evidence.push_back({what, gigabytes(*gb), gigabytes(*device)});
  }
}

// Large products reach part of the datasheet's peak, and never more.
bool is_likely_peak(const PeakInfo& peak, const PeakInfo& known) {
  constexpr double k_worth_telling = 0.01, k_min_reached = 0.6;
  const double share = peak.flops_per_second / known.flops_per_second;
  if (is_measured(peak)) return share >= k_min_reached && share <= 1;
  return std::fabs(share - 1) <= k_worth_telling;
}

// Of the catalogue's peak where the run's own was measured; nothing where the catalogue states none.
std::optional<double> mfu_of_datasheet(const RunResult& run) {
  const auto& mfu = run.derived.mfu;
  const auto& peak = run.derived.peak;
  if (!mfu || !peak) return std::nullopt;
  if (!is_measured(*peak)) return mfu->value;
  const auto known = run.precision ? catalogue_peak(run.gpu_info.device_name, *run.precision) : std::nullopt;
  return known ? std::optional(mfu->value * peak->flops_per_second / known->flops_per_second) : std::nullopt;
}

}  // namespace

Evidences find_foreign_device(const RunResult& run) {
  Evidences evidence;
  if (!run.platform) return evidence;
  const std::string platform(display_name(*run.platform));
  if (const auto of_device = platform_of_device(run.gpu_info.device_name); of_device && *of_device != *run.platform)
    evidence.push_back({"platform and device", platform, run.gpu_info.device_name});
  const std::string stack = run.gpu_info.software_stack.value_or("");
  if ((stack == "cuda" || stack == "rocm") && stack != stack_of(*run.platform))
    evidence.push_back({"platform and software stack", platform, stack});
  return evidence;
}

Evidences find_other_peak(const RunResult& run) {
  const auto& peak = run.derived.peak;
  if (!peak || !run.precision) return {};
  const auto known = catalogue_peak(run.gpu_info.device_name, *run.precision);
  if (!known || is_likely_peak(*peak, *known)) return {};
  const auto show = [](const PeakInfo& each) {
    return fmt::format("{} TFLOP/s ({})", format_significant(each.flops_per_second / 1e12, 4), each.id);
  };
  return {{"", show(*peak), show(*known)}};
}

Evidences find_impossible_memory(const RunResult& run) {
  constexpr double k_rounding = 1.001;
  Evidences evidence;
  compare_with_device(run, evidence);
  const MemoryMetrics& memory = run.memory_metrics;
  if (memory.peak_memory_allocated_gb && memory.peak_memory_reserved_gb &&
      *memory.peak_memory_allocated_gb > *memory.peak_memory_reserved_gb * k_rounding)
    evidence.push_back({"allocated", gigabytes(*memory.peak_memory_allocated_gb),
                        gigabytes(*memory.peak_memory_reserved_gb) + " reserved"});
  return evidence;
}

Evidences find_impossible_loss(const RunResult& run) {
  constexpr size_t k_enough = 10;
  std::vector<double> losses;
  std::ranges::copy_if(run.loss_values, std::back_inserter(losses), [](double loss) { return std::isfinite(loss); });
  if (losses.empty()) return {};
  const auto [least, most] = std::ranges::minmax_element(losses);
  const auto nats = [](double loss) { return format_significant(loss, 3) + " nats"; };
  if (*least < 0) return {{"lowest loss", nats(*least), "0 nats at least"}};
  if (losses.size() >= k_enough && *least == *most)
    return {{"loss", nats(*least), fmt::format("the same at all {} steps", losses.size())}};
  return {};
}

std::optional<double> find_unheard_of_mfu(const RunResult& run) {
  constexpr double k_highest = 0.75;  // published trainings end at 0.66: docs/metrics.md
  const auto mfu = mfu_of_datasheet(run);
  return mfu && *mfu > k_highest && *mfu <= 1 ? mfu : std::nullopt;
}

// Distances of time stamps are rounded at both ends alike, so that their sum is not.
std::optional<double> find_rounding(const RunResult& run) {
  constexpr double k_worth_telling = 0.0025;
  if (!run.steps || !run.steps->time_low || !run.steps->time_high ||
      run.source.step_time == TimeSource::from_timestamps)
    return std::nullopt;
  const auto &low = *run.steps->time_low, &high = *run.steps->time_high;
  double sum = 0, count = 0;
  for (auto i = static_cast<size_t>(std::max<int64_t>(0, run.warmup.steps_excluded)); i < run.step_times.size(); ++i) {
    if (i >= low.size() || i >= high.size() || !is_valid_step_time(run.step_times[i])) continue;
    const double share = (high[i] - low[i]) / 2 / run.step_times[i];
    if (std::isfinite(share)) sum += share, ++count;
  }
  return count > 0 && sum / count > k_worth_telling ? std::optional(sum / count) : std::nullopt;
}

LabelledTime time_labelled_steps(const RunResult& run) {
  std::set<int64_t> labels;
  if (run.steps)
    for (const LabelledStep& each : run.steps->labelled) labels.insert(each.step);
  LabelledTime time;
  double sum = 0, sum_of_plain = 0;
  for (auto i = static_cast<size_t>(std::max<int64_t>(0, run.warmup.steps_excluded)); i < run.step_times.size(); ++i) {
    if (!is_valid_step_time(run.step_times[i])) continue;
    const bool is_labelled = labels.contains(step_number(run, i));
    ++time.all, sum += run.step_times[i];
    time.labelled += is_labelled;
    if (!is_labelled) sum_of_plain += run.step_times[i];
  }
  const size_t plain = time.all - time.labelled;
  if (time.all > 0) time.with_them = sum / static_cast<double>(time.all);
  time.without = plain > 0 ? sum_of_plain / static_cast<double>(plain) : time.with_them;
  return time;
}

std::optional<double> find_constant_time(const RunResult& run) {
  constexpr size_t k_enough = 10;
  const std::vector<double> times = steady_step_times(run);
  if (times.size() < k_enough) return std::nullopt;
  const auto [least, most] = std::ranges::minmax_element(times);
  return *least == *most ? std::optional(*least) : std::nullopt;
}

std::optional<Drift> find_drift(const RunResult& run) {
  constexpr size_t k_enough = 30;
  constexpr double k_worth_telling = 0.02, k_beyond_noise = 3;
  const std::vector<double> times = steady_step_times(run);
  if (times.size() < k_enough) return std::nullopt;
  const std::span<const double> all(times);
  const size_t third = times.size() / 3;
  const auto first = all.first(third), middle = all.subspan(third, times.size() - 2 * third), last = all.last(third);
  const Drift drift{median(first), median(last)};
  const double between = median(middle);
  const bool is_monotonic = (between - drift.early) * (drift.late - between) > 0;
  constexpr double k_error_of_medians = 1.77;  // of the difference of two: sqrt(2) sqrt(pi / 2) sigma / sqrt(n)
  const double noise = k_error_of_medians * k_mad_to_sigma *
                       std::max(median_absolute_deviation(first), median_absolute_deviation(last)) /
                       std::sqrt(static_cast<double>(third));
  const double gap = std::fabs(drift.late - drift.early);
  if (!is_monotonic || gap <= k_worth_telling * drift.early || gap <= k_beyond_noise * noise) return std::nullopt;
  return drift;
}

}  // namespace tprimat::results
