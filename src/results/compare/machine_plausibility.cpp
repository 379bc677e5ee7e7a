#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/figure_meanings.h"
#include "compare/plausibility.h"
#include "result/consistency.h"
#include "result/peak.h"
#include "result/sampled_devices.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "stats/descriptive.h"
#include "text/format.h"

// Bounds and their reasons: docs/compare.md.
namespace tprimat::results {
namespace {

std::string watts(double value) { return format_significant(value, 4) + " W"; }

// Without utilisation and MFU the load of the devices is unknown.
bool is_known_busy(const RunResult& run, const TelemetrySummary& entry) {
  constexpr double k_busy_share = 0.5, k_busy_mfu = 0.1;
  if (const double share = entry.mean_utilisation.value_or(0); share >= k_busy_share && share <= 1.01) return true;
  return run.derived.mfu && run.derived.mfu->value >= k_busy_mfu;
}

bool is_processor(const RunResult& run) { return run.platform == Platform::cpu; }

struct PowerBounds {
  double least = 0, most = 0;  // W
};

PowerBounds bounds_of(double tdp_watts, int64_t devices, bool busy, bool whole_machine) {
  constexpr double k_min_busy = 0.15, k_min = 0.05, k_max_of_devices = 1.5, k_max_of_machine = 4;
  const double all = tdp_watts * static_cast<double>(devices);
  return {all * (busy ? k_min_busy : k_min), all * (whole_machine ? k_max_of_machine : k_max_of_devices)};
}

void hold_to(const PowerBounds& bounds, const std::string& what, double power, Evidences& evidence) {
  if (!(power >= bounds.least)) evidence.push_back({what, watts(power), watts(bounds.least) + " at least"});
  if (power > bounds.most) evidence.push_back({what, watts(power), watts(bounds.most) + " at most"});
}

// W; energy per token times tokens per second.
std::optional<double> power_of_energy(const RunResult& run) {
  if (!run.derived.joules_per_token || !run.derived.tokens_per_second) return std::nullopt;
  return run.derived.joules_per_token->value * run.derived.tokens_per_second->value;
}

// Seconds for the work of a step at the peak of its devices, by the catalogue where the file states no peak.
std::optional<double> least_step_time(const RunResult& run) {
  const auto flops = run.derived.flops_per_token.find(formula_id(FlopFormula::causal));
  const auto tokens = tokens_per_step(run), devices = device_count(run);
  if (flops == run.derived.flops_per_token.end() || !tokens || !devices) return std::nullopt;
  auto peak = run.derived.peak;
  if (!peak && run.precision) peak = catalogue_peak(run.gpu_info.device_name, *run.precision);
  if (!peak || !(peak->flops_per_second > 0)) return std::nullopt;
  return flops->second * static_cast<double>(*tokens) / static_cast<double>(*devices) / peak->flops_per_second;
}

double excess(const ClockedSteps& entry) { return entry.by_clock - entry.stated; }

// Of time stamps, s.
double resolution_of(const std::vector<double>& stamps) {
  const bool is_whole = std::ranges::all_of(stamps, [](double stamp) { return !(stamp > std::floor(stamp)); });
  return is_whole ? 1 : 0.01;
}

ClockedSteps sum_up(const std::vector<ClockedSteps>& entries, size_t count) {
  ClockedSteps sum;
  for (size_t i = 0; i < count; ++i) sum.by_clock += entries[i].by_clock, sum.stated += entries[i].stated;
  return sum;
}

// Evaluations, checkpoints and pauses lie between some stamps: neither the tenth with the most time beside the steps
// nor the entries above the median count. Reorders the entries. Stamps that are coarse compared with a step have no
// useful median.
bool has_hidden_time(std::vector<ClockedSteps>& entries, double resolution) {
  constexpr double k_min_told = 0.8, k_rounding = 2, k_coarse = 2;
  const size_t counted = entries.size() - entries.size() / 10;
  std::ranges::nth_element(entries, entries.begin() + static_cast<std::ptrdiff_t>(counted - 1),
                           [](const ClockedSteps& a, const ClockedSteps& b) { return excess(a) < excess(b); });
  const ClockedSteps most = sum_up(entries, counted);
  if (most.stated >= k_min_told * most.by_clock - k_rounding * resolution) return false;
  std::vector<double> steps, told;
  for (const ClockedSteps& each : entries)
    steps.push_back(each.stated), told.push_back(each.by_clock > 0 ? each.stated / each.by_clock : 1);
  return median(steps) < k_coarse * resolution || median(told) < k_min_told;
}

}  // namespace

bool is_possible_clock(const RunResult& run, double hertz) {
  constexpr double k_slowest = 1e8, k_fastest = 4e9, k_fastest_processor = 7e9;
  return hertz >= k_slowest && hertz <= (is_processor(run) ? k_fastest_processor : k_fastest);
}

Evidences find_impossible_power(const RunResult& run) {
  Evidences evidence;
  const auto part = find_hardware(run.gpu_info.device_name);
  const auto hold = [&](const TelemetrySummary& entry, const std::string& what, double power) {
    const bool is_machine = !is_device_counter(entry.source);
    hold_to(bounds_of(*part->tdp_watts, devices_of(run, entry), is_known_busy(run, entry), is_machine), what, power,
            evidence);
  };
  for (const TelemetrySummary& each : run.telemetry) {
    if (!each.mean_power_watts) continue;
    if (!(*each.mean_power_watts > 0))
      evidence.push_back({each.source, watts(*each.mean_power_watts), "above 0 W"});
    else if (part && part->tdp_watts && (is_device_counter(each.source) || &each == &run.telemetry.front()))
      hold(each, each.source, *each.mean_power_watts);
    if (!evidence.empty()) return evidence;
  }
  const TelemetrySummary* entry = find_energy(run);
  if (const auto power = power_of_energy(run); power && part && part->tdp_watts && entry != nullptr)
    hold(*entry, "energy over time", *power);
  return evidence;
}

Evidences find_impossible_price(const RunResult& run) {
  constexpr double k_min = 0.01, k_max = 100;
  if (!run.derived.usd_per_hour) return {};
  const auto usd = [](double price) { return fmt::format("{:g} USD", price); };
  const double price = *run.derived.usd_per_hour;
  if (!(price > 0) || !std::isfinite(price)) return {{"price per hour", usd(price), "above 0 USD"}};
  const auto of_device = device_price(run);
  if (!of_device || !find_hardware(run.gpu_info.device_name)) return {};
  if (*of_device < k_min) return {{"price per device-hour", usd(*of_device), usd(k_min) + " at least"}};
  if (*of_device > k_max) return {{"price per device-hour", usd(*of_device), usd(k_max) + " at most"}};
  return {};
}

Evidences find_impossible_time(const RunResult& run) {
  constexpr double k_min_mfu = 1e-3, k_large_step = 0.01, k_min_rate = 1, k_many_tokens = 1000;
  if (!find_hardware(run.gpu_info.device_name)) return {};
  if (const auto least = least_step_time(run); least && run.statistics) {
    const double mfu = *least / run.statistics->mean;
    if (mfu >= k_min_mfu || *least < k_large_step) return {};
    return {{"MFU", format_percent(mfu, 3),
             fmt::format("{} at least for steps that take {} at the peak", format_percent(k_min_mfu, 1),
                         format_duration(*least))}};
  }
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  const auto tokens = tokens_per_step(run), devices = device_count(run);
  if (!rate || !tokens || !devices || rate->value >= k_min_rate) return {};
  if (static_cast<double>(*tokens) / static_cast<double>(*devices) < k_many_tokens) return {};
  return {{"tokens/s per device", format_significant(rate->value, 3), fmt::format("{:g} at least", k_min_rate)}};
}

// Logs round a stamp to a second at worst, so a span is off by up to 2 s. One step of ten may be shorter than the ten,
// and never longer.
std::optional<std::string> describe_clock_gap(const RunResult& run) {
  constexpr size_t k_enough = 5;
  constexpr double k_rounding = 2, k_max_over = 1.15;
  if (!run.reported || !run.reported->unix_time || run.source.step_time == TimeSource::from_timestamps)
    return std::nullopt;
  std::vector<ClockedSteps> entries =
      clocked_steps(run, static_cast<size_t>(std::max<int64_t>(1, run.warmup.steps_excluded)));
  std::erase_if(entries, [](const ClockedSteps& each) { return each.by_clock < 0; });
  if (entries.size() < k_enough) return std::nullopt;
  ClockedSteps sum = sum_up(entries, entries.size());
  if (sum.stated <= k_max_over * sum.by_clock + k_rounding) {
    std::erase_if(entries, [](const ClockedSteps& each) { return !each.are_all; });
    sum = sum_up(entries, entries.size());
    if (entries.size() < k_enough || !has_hidden_time(entries, resolution_of(*run.reported->unix_time)))
      return std::nullopt;
  }
  return fmt::format("{} of {} steps, {} by the log's clock", format_duration(sum.stated), entries.size(),
                     format_duration(sum.by_clock));
}

// Slower than any idle device or faster than any real one: the unit is wrong, or the figure is invented.
Evidences find_impossible_clock(const RunResult& run) {
  constexpr double k_full = 1.01;  // of a share, rounded
  Evidences evidence;
  for (const TelemetrySummary& each : run.telemetry) {
    if (each.mean_clock_hz && !is_possible_clock(run, *each.mean_clock_hz))
      evidence.push_back({"clock by " + each.source, format_significant(*each.mean_clock_hz, 4) + " Hz",
                          is_processor(run) ? "0.1 to 7 GHz" : "0.1 to 4 GHz"});
    if (each.mean_utilisation && !(*each.mean_utilisation >= 0 && *each.mean_utilisation <= k_full))
      evidence.push_back({"utilisation by " + each.source, format_significant(*each.mean_utilisation, 4), "0 to 1"});
  }
  return evidence;
}

}  // namespace tprimat::results
