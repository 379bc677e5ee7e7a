#include "result/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "result/expert_summary.h"
#include "result/metrics.h"
#include "result/printed_settings.h"
#include "result/sampled_devices.h"
#include "stats/change_points.h"
#include "stats/descriptive.h"
#include "stats/mean_estimate.h"

namespace tprimat {
namespace {

std::vector<double> finite_values(const std::vector<double>& values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [](double v) { return std::isfinite(v); });
  return kept;
}

// Entries of step_times that tell the time of training steps: those without a label, and with a time where a log leaves
// some out.
std::vector<size_t> plain_entries(const RunResult& result) {
  std::vector<size_t> entries;
  entries.reserve(result.step_times.size());
  const std::set<int64_t> labelled = labelled_steps(result);
  for (size_t i = 0; i < result.step_times.size(); ++i)
    if (!labelled.contains(step_number(result, i)) && !(result.steps && std::isnan(result.step_times[i])))
      entries.push_back(i);
  return entries;
}

// The warm-up of the plain entries, as a count of all entries.
Warmup spread_warmup(const Warmup& plain, const std::vector<size_t>& entries, size_t all) {
  Warmup warmup = plain;
  const auto excluded = static_cast<size_t>(plain.steps_excluded);
  warmup.steps_excluded = static_cast<int64_t>(excluded < entries.size() ? entries[excluded] : all);
  return warmup;
}

Warmup find_warmup_of(const std::vector<double>& times, const std::optional<int64_t>& fixed) {
  const auto steps = static_cast<int64_t>(times.size());
  if (fixed) {
    const int64_t excluded = std::min(steps, std::max<int64_t>(1, *fixed));
    return {excluded, WarmupMethod::fixed,
            fmt::format("the configuration leaves out {} step{}", excluded, excluded == 1 ? "" : "s"), true};
  }
  const bool all_valid = std::all_of(times.begin(), times.end(), is_valid_step_time);
  if (!all_valid)
    return {std::min<int64_t>(1, steps), WarmupMethod::first_step,
            "some steps have no valid time, so shifts were not searched for", true};
  const SteadyState found = find_steady_state(times);
  return {static_cast<int64_t>(found.excluded),
          found.excluded <= 1 ? WarmupMethod::first_step : WarmupMethod::change_point, found.reason, found.steady};
}

Warmup find_warmup(const RunResult& result, const std::optional<int64_t>& fixed) {
  const std::vector<size_t> entries = plain_entries(result);
  std::vector<double> times;
  times.reserve(entries.size());
  for (const size_t entry : entries) times.push_back(result.step_times[entry]);
  return spread_warmup(find_warmup_of(times, fixed), entries, result.step_times.size());
}

PerformanceMetrics measure_performance(const RunResult& result, const std::vector<double>& steady) {
  PerformanceMetrics metrics;
  for (size_t i = 0; i < result.step_times.size(); ++i) {
    const double seconds = result.step_times[i];
    metrics.total_steps += entry_span(result, i);
    metrics.total_time_seconds +=
        is_valid_step_time(seconds) ? seconds * static_cast<double>(entry_span(result, i)) : 0;
  }
  if (steady.empty()) return metrics;
  metrics.avg_step_time_seconds = mean(steady);
  metrics.min_step_time_seconds = *std::min_element(steady.begin(), steady.end());
  metrics.max_step_time_seconds = *std::max_element(steady.begin(), steady.end());
  metrics.steps_per_second = 1 / *metrics.avg_step_time_seconds;
  return metrics;
}

// Steps have the log's own numbers, so that a reader finds them there.
std::vector<int64_t> outlier_steps(const RunResult& result) {
  std::vector<double> times;
  std::vector<int64_t> numbers;
  for (const size_t i : plain_entries(result)) {
    if (static_cast<int64_t>(i) < result.warmup.steps_excluded || !is_valid_step_time(result.step_times[i])) continue;
    times.push_back(result.step_times[i]);
    numbers.push_back(step_number(result, i));
  }
  std::vector<int64_t> steps;
  for (const size_t index : find_outliers(times)) steps.push_back(numbers[index]);
  return steps;
}

StepStatistics describe_steps(const RunResult& result, const std::vector<double>& steady) {
  StepStatistics s;
  s.count = static_cast<int64_t>(steady.size());
  const std::vector<double> spread = quantiles(steady, std::array{0.05, 0.5, 0.95});
  s.median = spread[1];
  s.mean = mean(steady);
  s.stddev = stddev(steady);
  s.p5 = spread[0];
  s.p95 = spread[2];
  s.cv = s.stddev / s.mean;
  if (const auto estimate = estimate_mean(steady)) {
    const Interval interval = positive_interval(*estimate);
    if (interval.low > 0 && std::isfinite(interval.high)) {  // else the steps tell nothing of their mean
      s.ci95_low = interval.low, s.ci95_high = interval.high;
      s.interval_method = std::string(k_interval_method);
    }
  }
  s.outliers = outlier_steps(result);
  return s;
}

void measure_memory(RunResult& result) {
  const std::vector<double> values = finite_values(result.memory_values);
  MemoryMetrics& memory = result.memory_metrics;
  if (!values.empty()) {
    memory.avg_memory_allocated_gb = mean(values);
    memory.peak_memory_allocated_gb =
        std::max(memory.peak_memory_allocated_gb.value_or(0), *std::max_element(values.begin(), values.end()));
  }
  raise_peaks_of_ranks(result);
  for (const TelemetrySummary& each : result.telemetry)
    if (each.peak_memory_used_gb)
      memory.peak_device_used_gb = std::max(memory.peak_device_used_gb.value_or(0), *each.peak_memory_used_gb);
}

// The peak that a kind of memory is part of; nullptr for none.
std::optional<double>* peak_of(MemoryMetrics& memory, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::allocated:
    case MemoryKind::peak_allocated: return &memory.peak_memory_allocated_gb;
    case MemoryKind::reserved:
    case MemoryKind::peak_reserved: return &memory.peak_memory_reserved_gb;
    case MemoryKind::device_used: return &memory.peak_device_used_gb;
    default: return nullptr;
  }
}

Estimate scaled(const Estimate& estimate, double factor) {
  Estimate result{estimate.value * factor, {}, {}};
  if (estimate.low && estimate.high) result.low = *estimate.low * factor, result.high = *estimate.high * factor;
  return result;
}

// `amount` per second where one step takes as long as the statistics say; a long step is a low rate.
Estimate rate_of(double amount, const StepStatistics& s) {
  Estimate rate{amount / s.mean, {}, {}};
  if (s.ci95_low && s.ci95_high && *s.ci95_low > 0) rate.low = amount / *s.ci95_high, rate.high = amount / *s.ci95_low;
  return rate;
}

Estimate cost_of(double usd_per_hour, const Estimate& tokens_per_second) {
  const double usd = usd_per_hour / 3600 * 1e12;  // per second, for 1e12 tokens
  Estimate cost{usd / tokens_per_second.value, {}, {}};
  if (tokens_per_second.low && tokens_per_second.high)
    cost.low = usd / *tokens_per_second.high, cost.high = usd / *tokens_per_second.low;
  return cost;
}

std::map<std::string, double> count_flops(const RunResult& result) {
  std::map<std::string, double> flops;
  const auto& shape = result.model_info.shape;
  const auto length = result.training_config.sequence_length;
  if (!shape || !length || *length <= 0 || !check_model(*shape, "").empty()) return flops;
  if (!result.model_info.trainable_parameters && find_adapters(result)) return flops;  // frozen weights cost less
  for (const FlopFormula formula : {FlopFormula::causal, FlopFormula::full, FlopFormula::six_n})
    flops[formula_id(formula)] = flops_per_token(*shape, *length, formula, result.model_info.trainable_parameters);
  return flops;
}

void derive_energy(RunResult& result, double steady_tokens) {
  const TelemetrySummary* sensor = find_energy(result);
  if (sensor == nullptr) return;
  // Power is taken as exact, so energy is as uncertain as time.
  const StepStatistics& steps = *result.statistics;
  Estimate joules{*sensor->energy_joules / steady_tokens, {}, {}};
  if (steps.ci95_low && steps.ci95_high && steps.mean > 0)
    joules.low = joules.value * *steps.ci95_low / steps.mean,
    joules.high = joules.value * *steps.ci95_high / steps.mean;
  result.derived.joules_per_token = joules;
}

void derive_utilisation(Derived& derived) {
  if (derived.flops_per_token.empty() || !derived.tokens_per_second_per_gpu) return;
  derived.headline_formula = formula_id(FlopFormula::causal);
  const double flops = derived.flops_per_token.at(derived.headline_formula);
  derived.tflops_per_gpu = scaled(*derived.tokens_per_second_per_gpu, flops / 1e12);
  if (!derived.peak || derived.peak->flops_per_second <= 0) return;
  derived.mfu = limit_interval(scaled(*derived.tokens_per_second_per_gpu, flops / derived.peak->flops_per_second),
                               find_metric("mfu")->range);
  for (const auto& [formula, each] : derived.flops_per_token)
    derived.mfu_by_formula[formula] = derived.tokens_per_second_per_gpu->value * each / derived.peak->flops_per_second;
}

// Tokens of equal steps / their time is the harmonic mean of their rates. The first step never counts.
std::optional<Estimate> reported_rate(const RunResult& result, const std::optional<std::vector<double>>& series) {
  if (!series) return std::nullopt;
  const std::set<int64_t> labelled = labelled_steps(result);
  double inverse = 0;
  size_t count = 0;
  for (size_t i = std::max<size_t>(1, static_cast<size_t>(result.warmup.steps_excluded)); i < series->size(); ++i) {
    const double rate = (*series)[i];
    if (!std::isfinite(rate) || rate <= 0 || labelled.count(step_number(result, i)) > 0) continue;
    inverse += 1 / rate;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return Estimate{static_cast<double>(count) / inverse, {}, {}};
}

// Without the tokens per step only the framework's own rate is left; it is shown without an interval.
void adopt_reported_rates(RunResult& result, Derived& derived) {
  if (!result.reported || derived.tokens_per_second) return;
  derived.tokens_per_second = reported_rate(result, result.reported->tokens_per_second);
  derived.tokens_per_second_per_gpu = reported_rate(result, result.reported->tokens_per_second_per_gpu);
  const auto devices = device_count(result);
  if (devices && derived.tokens_per_second && !derived.tokens_per_second_per_gpu)
    derived.tokens_per_second_per_gpu = scaled(*derived.tokens_per_second, 1.0 / static_cast<double>(*devices));
  if (devices && derived.tokens_per_second_per_gpu && !derived.tokens_per_second)
    derived.tokens_per_second = scaled(*derived.tokens_per_second_per_gpu, static_cast<double>(*devices));
  if (!derived.tokens_per_second_per_gpu) return;
  derive_utilisation(derived);
  add_warning(result, "tokens/s is the rate that the framework reports: the log does not state the tokens per step");
}

void derive_figures(RunResult& result, const SummaryOptions& options) {
  Derived derived;
  derived.flops_per_token = count_flops(result);
  derived.peak = options.peak;
  derived.usd_per_hour = options.usd_per_hour;
  const auto tokens = tokens_per_step(result);
  if (tokens && result.statistics) {
    derived.tokens_per_second = rate_of(static_cast<double>(*tokens), *result.statistics);
    if (const auto devices = device_count(result))
      derived.tokens_per_second_per_gpu = scaled(*derived.tokens_per_second, 1.0 / static_cast<double>(*devices));
    if (options.usd_per_hour) derived.usd_per_1e12_tokens = cost_of(*options.usd_per_hour, *derived.tokens_per_second);
    derive_utilisation(derived);
  }
  if (!derived.tokens_per_second_per_gpu) adopt_reported_rates(result, derived);
  result.derived = std::move(derived);
  if (!tokens || !result.statistics) return;
  // Energy is measured from the end of the warm-up to the last step, whatever these steps hold.
  const auto warmup = static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded));
  const int64_t steps = steps_between(result, warmup, result.step_times.size());
  derive_energy(result, static_cast<double>(*tokens) * static_cast<double>(steps));
}

// Beside the steady steps, which it leaves as they are.
void measure_profile(RunProfile& profile, const std::optional<StepStatistics>& steady) {
  std::vector<double> times;
  std::ranges::copy_if(profile.step_times, std::back_inserter(times), is_valid_step_time);
  profile.step_time_seconds = times.empty() ? std::nullopt : std::optional(mean(times));
  profile.cost.reset();
  if (profile.step_time_seconds && steady && steady->mean > 0)
    profile.cost = *profile.step_time_seconds / steady->mean - 1;
}

}  // namespace

void raise_peaks_of_ranks(RunResult& result) {
  for (const RankMemoryEntry& each : result.memory_by_rank.value_or(std::vector<RankMemoryEntry>()))
    if (std::optional<double>* peak = peak_of(result.memory_metrics, each.kind); peak != nullptr)
      *peak = std::max(peak->value_or(0), each.gb);
}

const TelemetrySummary* find_energy(const RunResult& result) {
  for (const TelemetrySummary& each : result.telemetry)
    if (each.energy_joules && each.energy_valid.value_or(false) && covers_all_devices(result, each)) return &each;
  return nullptr;
}

int64_t entry_span(const RunResult& result, size_t entry) {
  if (!result.steps || !result.steps->mean_of || entry >= result.steps->mean_of->size()) return 1;
  return std::max<int64_t>(1, (*result.steps->mean_of)[entry]);
}

int64_t steps_between(const RunResult& result, size_t begin, size_t end) {
  int64_t steps = 0;
  for (size_t i = begin; i < end; ++i) steps += entry_span(result, i);
  return steps;
}

std::set<int64_t> labelled_steps(const RunResult& result) {
  std::set<int64_t> labelled;
  if (result.steps)
    for (const LabelledStep& each : result.steps->labelled) labelled.insert(each.step);
  return labelled;
}

int64_t usual_span(const RunResult& result) {
  const auto entries = static_cast<int64_t>(result.step_times.size());
  const int64_t warmup = result.warmup.steps_excluded;
  std::map<int64_t, int64_t> counts;
  for (int64_t i = warmup < entries ? std::max<int64_t>(0, warmup) : 0; i < entries; ++i)
    ++counts[entry_span(result, static_cast<size_t>(i))];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? 1 : most->first;
}

bool is_valid_step_time(double seconds) {
  constexpr double k_shortest = 1e-9, k_longest = 1e8;  // three years
  return seconds >= k_shortest && seconds <= k_longest;
}

SummaryOptions stored_options(const RunResult& result) {
  SummaryOptions options{{}, result.derived.peak, result.derived.usd_per_hour};
  if (result.warmup.method == WarmupMethod::fixed) options.fixed_warmup_steps = result.warmup.steps_excluded;
  return options;
}

std::optional<int64_t> device_count(const RunResult& result) {
  for (const auto& count : {result.training_config.num_gpus, result.gpu_info.device_count})
    if (count && *count > 0) return count;
  return std::nullopt;
}

std::optional<int64_t> tokens_per_step(const RunResult& result) {
  const auto& batch = result.training_config.global_batch_size;
  const auto& length = result.training_config.sequence_length;
  if (!batch || !length || *batch <= 0 || *length <= 0) {
    const auto& stated = result.training_config.tokens_per_step;
    return stated && *stated > 0 ? stated : std::nullopt;
  }
  constexpr int64_t k_max = int64_t{1} << 50;  // beyond any training: a broken file must not overflow
  if (*batch > k_max / *length) return std::nullopt;
  return *batch * *length;
}

std::vector<double> steady_step_times(const RunResult& result) {
  std::vector<double> steady;
  steady.reserve(result.step_times.size());
  for (const size_t i : plain_entries(result))
    if (static_cast<int64_t>(i) >= result.warmup.steps_excluded && is_valid_step_time(result.step_times[i]))
      steady.push_back(result.step_times[i]);
  return steady;
}

int64_t step_number(const RunResult& result, size_t entry) {
  if (result.steps && result.steps->numbers && entry < result.steps->numbers->size())
    return (*result.steps->numbers)[entry];
  return static_cast<int64_t>(entry) + 1;
}

void summarise_run(RunResult& result, const SummaryOptions& options) {
  result.warmup = find_warmup(result, options.fixed_warmup_steps);
  const std::vector<double> steady = steady_step_times(result);
  result.performance_metrics = measure_performance(result, steady);
  result.statistics.reset();
  if (!steady.empty()) result.statistics = describe_steps(result, steady);
  if (result.profile) measure_profile(*result.profile, result.statistics);
  measure_memory(result);
  summarise_experts(result);
  derive_figures(result, options);
  if (result.derived.tokens_per_second)
    result.performance_metrics->tokens_per_second = result.derived.tokens_per_second->value;
  if (result.derived.tokens_per_second_per_gpu)
    result.performance_metrics->tokens_per_second_per_gpu = result.derived.tokens_per_second_per_gpu->value;
  check_validity(result);
}

}  // namespace tprimat
