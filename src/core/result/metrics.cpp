#include "result/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "result/metric_readers.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Value = std::optional<Estimate>;

Value read_mean_step_time(const RunResult& result) {
  if (result.statistics)
    return Estimate{result.statistics->mean, result.statistics->ci95_low, result.statistics->ci95_high};
  return result.performance_metrics ? plain(result.performance_metrics->avg_step_time_seconds) : std::nullopt;
}

template <double StepStatistics::*member>
Value read_statistic(const RunResult& result) {
  return result.statistics ? plain(result.statistics.value().*member) : std::nullopt;
}

// Equal times have a mean that is off by the last bit, and no variation.
Value read_variation(const RunResult& result) {
  constexpr double k_last_bits = 1e-12;
  if (!result.statistics) return std::nullopt;
  return plain(result.statistics->cv < k_last_bits ? 0 : result.statistics->cv);
}

template <std::optional<double> MemoryMetrics::*member>
Value read_memory(const RunResult& result) {
  return plain(result.memory_metrics.*member);
}

template <std::optional<Estimate> Derived::*member>
Value read_derived(const RunResult& result) {
  return result.derived.*member;
}

Value read_power(const RunResult& result) {
  for (const TelemetrySummary& each : result.telemetry)
    if (each.mean_power_watts) return plain(each.mean_power_watts);
  return std::nullopt;
}

constexpr PossibleRange k_share = {0, 1};
constexpr PossibleRange k_relative_error = {-1};  // of a positive prediction

template <std::optional<double> (*read)(const RunResult&)>
Value read_plain(const RunResult& result) {
  return plain(read(result));
}

// The work of a step and the devices that share it: step times are comparable only where these are equal.
constexpr std::string_view k_work[] = {"batch", "sequence_length", "step_work", "device_count"};
template <class... More>
constexpr RuleCodes with_work(More... more) {
  return {k_work[0], k_work[1], k_work[2], k_work[3], more...};
}

using enum Direction;
constexpr Metric k_metrics[] = {
    {.key = "tokens_per_second_per_gpu",
     .title = "tokens/s per device",
     .unit = "tokens/s",
     .better = higher_is_better,
     .format = MetricFormat::count,
     .formula = "tokens of the steady steps / their time / devices of the run",
     .read = read_derived<&Derived::tokens_per_second_per_gpu>,
     .relation = StepRelation::inverse},
    {.key = "tokens_per_second",
     .title = "tokens/s",
     .unit = "tokens/s",
     .better = higher_is_better,
     .format = MetricFormat::count,
     .formula = "tokens of the steady steps / their time",
     .read = read_derived<&Derived::tokens_per_second>,
     .relation = StepRelation::inverse,
     .unlike = {"device_count"}},
    {.key = "tflops_per_gpu",
     .title = "model TFLOP/s per device",
     .unit = "TFLOP/s",
     .better = higher_is_better,
     .format = MetricFormat::significant,
     .formula = "tokens/s per device x model FLOPs per token (causal) / 1e12",
     .read = read_derived<&Derived::tflops_per_gpu>,
     .relation = StepRelation::inverse,
     .unlike = {"flop_formula"},
     .contradicted = "TFLOP/s per device"},
    {.key = "mfu",
     .title = "MFU",
     .better = higher_is_better,
     .format = MetricFormat::percent,
     .formula = "tokens/s per device x model FLOPs per token (causal) / dense peak of one device",
     .read = read_derived<&Derived::mfu>,
     .relation = StepRelation::inverse,
     .unlike = {"flop_formula", "peak", "peak_value"},
     .doubted = {"unheard_of_mfu", "other_peak"},
     .contradicted = "MFU",
     .range = k_share},
    {.key = "mean_step_time",
     .title = "step time, mean",
     .unit = "s",
     .better = lower_is_better,
     .format = MetricFormat::seconds,
     .formula = "time of the steady steps / their number",
     .read = read_mean_step_time,
     .relation = StepRelation::proportional,
     .unlike = with_work()},
    {.key = "median_step_time",
     .title = "step time, median",
     .unit = "s",
     .better = lower_is_better,
     .format = MetricFormat::seconds,
     .formula = "median of the steady steps",
     .read = read_statistic<&StepStatistics::median>,
     .unlike = with_work("record_span")},
    {.key = "p95_step_time",
     .title = "step time, 95th percentile",
     .unit = "s",
     .better = lower_is_better,
     .format = MetricFormat::seconds,
     .formula = "95th percentile of the steady steps",
     .read = read_statistic<&StepStatistics::p95>,
     .unlike = with_work("record_span"),
     .contradicted = "95th percentile"},
    {.key = "step_time_cv",
     .title = "step time, variation",
     .better = lower_is_better,
     .format = MetricFormat::percent,
     .formula = "standard deviation of the steady steps / their mean",
     .read = read_variation,
     .unlike = {"record_span"},
     .contradicted = "variation of step times"},
    {.key = "first_step_time",
     .title = "first step",
     .unit = "s",
     .better = neither,
     .format = MetricFormat::seconds,
     .formula = "time of step 1, never part of the steady state",
     .read = read_first_step,
     .unlike = with_work()},
    {.key = "total_time",
     .title = "all steps",
     .unit = "s",
     .better = neither,
     .format = MetricFormat::seconds,
     .formula = "sum of all step times, warm-up included",
     .read = read_total_time,
     .unlike = with_work("total_steps"),
     .contradicted = "time of all steps"},
    {.key = "time_to_train",
     .title = "time to train",
     .unit = "s",
     .better = lower_is_better,
     .format = MetricFormat::seconds,
     .formula = "from run_start to run_stop of a run that reached its target quality",
     .read = read_time_to_train,
     .unlike = {"time_to_train_rules"}},
    {.key = "peak_memory_allocated_gb",
     .title = "memory allocated, peak",
     .unit = "GB",
     .better = lower_is_better,
     .format = MetricFormat::gigabytes,
     .formula = "most memory the trainer's tensors held on one device",
     .read = read_memory<&MemoryMetrics::peak_memory_allocated_gb>,
     .unlike = {"memory_meaning"},
     .doubted = {"impossible_memory"},
     .table = MetricTable::resources,
     .share = "memory_allocated_share"},
    {.key = "peak_memory_reserved_gb",
     .title = "memory reserved, peak",
     .unit = "GB",
     .better = lower_is_better,
     .format = MetricFormat::gigabytes,
     .formula = "most memory the trainer's allocator held on one device",
     .read = read_memory<&MemoryMetrics::peak_memory_reserved_gb>,
     .unlike = {"memory_meaning"},
     .doubted = {"impossible_memory"},
     .table = MetricTable::resources,
     .share = "memory_reserved_share"},
    {.key = "peak_device_used_gb",
     .title = "memory used, peak",
     .unit = "GB",
     .better = lower_is_better,
     .format = MetricFormat::gigabytes,
     .formula = "most memory in use on the device or by the processes, as the system saw it",
     .read = read_memory<&MemoryMetrics::peak_device_used_gb>,
     .unlike = {"memory_meaning", "memory_source"},
     .doubted = {"impossible_memory"},
     .table = MetricTable::resources,
     .share = "device_used_share"},
    {.key = "memory_allocated_share",
     .title = "memory allocated, of the device",
     .better = lower_is_better,
     .format = MetricFormat::percent,
     .formula = "memory allocated, peak / memory of one device",
     .read = read_allocated_share,
     .unlike = {"memory_meaning"},
     .doubted = {"impossible_memory"},
     .range = k_share,
     .table = MetricTable::resources},
    {.key = "memory_reserved_share",
     .title = "memory reserved, of the device",
     .better = lower_is_better,
     .format = MetricFormat::percent,
     .formula = "memory reserved, peak / memory of one device",
     .read = read_reserved_share,
     .unlike = {"memory_meaning"},
     .doubted = {"impossible_memory"},
     .range = k_share,
     .table = MetricTable::resources},
    {.key = "device_used_share",
     .title = "memory used, of the device",
     .better = lower_is_better,
     .format = MetricFormat::percent,
     .formula = "memory used, peak / memory of one device",
     .read = read_used_share,
     .unlike = {"memory_meaning", "memory_source"},
     .doubted = {"impossible_memory"},
     .range = k_share,
     .table = MetricTable::resources},
    {.key = "mean_power",
     .title = "power, mean, W",
     .unit = "W",
     .better = lower_is_better,
     .format = MetricFormat::count,
     .formula = "mean of the power samples over the steady steps",
     .read = read_power,
     .unlike = {"power_source", "device_count"},
     .doubted = {"impossible_power"},
     .table = MetricTable::resources},
    {.key = "joules_per_token",
     .title = "energy per token, J",
     .unit = "J",
     .better = lower_is_better,
     .format = MetricFormat::significant,
     .formula = "energy over the steady steps / their tokens",
     .read = read_derived<&Derived::joules_per_token>,
     .unlike = {"energy_source"},
     .doubted = {"impossible_power"},
     .contradicted = "joules per token",
     .table = MetricTable::resources},
    {.key = "tokens_per_wh",
     .title = "tokens per Wh",
     .unit = "tokens/Wh",
     .better = higher_is_better,
     .format = MetricFormat::count,
     .formula = "3600 / energy per token in J",
     .read = read_tokens_per_wh,
     .unlike = {"energy_source"},
     .doubted = {"impossible_power"},
     .contradicted = "joules per token",
     .table = MetricTable::resources,
     .restates = "joules_per_token"},
    {.key = "usd_per_1e12_tokens",
     .title = "cost of 1e12 tokens, USD",
     .unit = "USD",
     .better = lower_is_better,
     .format = MetricFormat::count,
     .formula = "price per hour / tokens per hour x 1e12",
     .read = read_derived<&Derived::usd_per_1e12_tokens>,
     .relation = StepRelation::proportional,
     .unlike = {"price"},
     .doubted = {"impossible_price"},
     .contradicted = "USD per 1e12 tokens",
     .table = MetricTable::resources},
    {.key = "tokens_per_usd_hour",
     .title = "tokens per USD-hour",
     .unit = "tokens/USD",
     .better = higher_is_better,
     .format = MetricFormat::count,
     .formula = "tokens per hour / price per hour: what one USD buys",
     .read = read_tokens_per_usd_hour,
     .relation = StepRelation::inverse,
     .unlike = {"price"},
     .doubted = {"impossible_price"},
     .contradicted = "USD per 1e12 tokens",
     .table = MetricTable::resources,
     .restates = "usd_per_1e12_tokens"},
    {.key = "days_per_1e12_tokens",
     .title = "days for 1e12 tokens",
     .unit = "d",
     .better = lower_is_better,
     .format = MetricFormat::count,
     .formula = "1e12 / tokens per day",
     .read = read_days<1>,
     .relation = StepRelation::proportional,
     .unlike = {"device_count"},
     .table = MetricTable::resources,
     .restates = "tokens_per_second"},
    {.key = "days_per_15e12_tokens",
     .title = "days for 15e12 tokens",
     .unit = "d",
     .better = lower_is_better,
     .format = MetricFormat::count,
     .formula = "15e12 / tokens per day",
     .read = read_days<15>,
     .relation = StepRelation::proportional,
     .unlike = {"device_count"},
     .table = MetricTable::resources,
     .restates = "tokens_per_second"},
    {.key = "final_loss",
     .title = "final loss, nats",
     .unit = "nats",
     .better = neither,
     .format = MetricFormat::significant,
     .formula = "mean loss of the last tenth of the steps, 1 to 20 of them",
     .read = read_final_loss,
     .unlike = {"batch", "sequence_length", "step_work", "loss_steps", "dataset"},
     .doubted = {"impossible_loss", "loss_collapse", "nothing_learned"}},
    {.key = "expert_load",
     .title = "fullest expert's load",
     .unit = "x mean",
     .better = neither,
     .format = MetricFormat::significant,
     .formula = "tokens of the fullest expert / mean of the experts, over the layers and steady steps",
     .read = read_expert_load,
     .range = {1}},
    {.key = "dropped_share",
     .title = "dropped tokens",
     .better = neither,
     .format = MetricFormat::percent,
     .formula = "share of the token-expert assignments that were dropped, over the steady steps",
     .read = read_dropped_share,
     .range = k_share},
    {.key = "aux_loss",
     .title = "balancing loss",
     .unit = "nats",
     .better = neither,
     .format = MetricFormat::significant,
     .formula = "router's balancing loss as added to the loss, mean of the steady steps",
     .read = read_aux_loss},
    {.key = "step_time_prediction_error",
     .title = "planner's error, step time",
     .better = neither,
     .format = MetricFormat::percent,
     .formula = "predicted step time / median of the steady steps - 1",
     .read = read_plain<step_time_prediction_error>,
     .range = k_relative_error},
    {.key = "memory_prediction_error",
     .title = "planner's error, memory",
     .better = neither,
     .format = MetricFormat::percent,
     .formula = "predicted memory of the device that needs most / the measured - 1",
     .read = read_plain<memory_prediction_error>,
     .range = k_relative_error},
};

}  // namespace

std::span<const Metric> metrics() { return k_metrics; }

Estimate limit_interval(Estimate estimate, const PossibleRange& range) {
  if (!estimate.low || !estimate.high) return estimate;
  if (!(estimate.value >= range.least && estimate.value <= range.most)) return {estimate.value, {}, {}};
  estimate.low = std::max(*estimate.low, range.least);
  estimate.high = std::min(*estimate.high, range.most);
  return estimate;
}

std::optional<double> whole_of(const std::optional<Estimate>& figure, const std::optional<Estimate>& share) {
  constexpr double k_last_bits = 1e-12;
  if (!figure || !share || !(share->value > 0)) return std::nullopt;
  return figure->value / share->value * (1 + k_last_bits);
}

bool has_percentages(const Metric& metric) { return metric.range.least >= 0; }

size_t final_loss_window(const RunResult& result) { return std::clamp<size_t>(result.loss_values.size() / 10, 1, 20); }

bool holds_code(const RuleCodes& codes, std::string_view code) {
  return !code.empty() && std::find(codes.begin(), codes.end(), code) != codes.end();
}

const Metric* find_metric(std::string_view key) {
  const auto found = std::ranges::find(k_metrics, key, &Metric::key);
  return found == std::end(k_metrics) ? nullptr : found;
}

std::string suggest_metric(std::string_view key) {
  constexpr size_t k_min_part = 4;  // letters: "step_time" means mean_step_time, the first that holds it
  std::vector<std::string> keys;
  for (const Metric& metric : metrics()) keys.emplace_back(metric.key);
  const auto longer = std::find_if(keys.begin(), keys.end(), [&](const std::string& each) {
    return key.size() >= k_min_part && each.find(key) != std::string::npos;
  });
  const std::string nearest = longer != keys.end() ? *longer : nearest_word(key, keys);
  return nearest.empty() ? fmt::format("choose one of {}", join(keys, ", ")) : fmt::format("did you mean {}?", nearest);
}

}  // namespace tprimat
