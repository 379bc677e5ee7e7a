#include "result/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "result/prediction.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Value = std::optional<Estimate>;

Value plain(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Estimate{*value, {}, {}};
}

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

Value read_days(const RunResult& result) {
  const auto& rate = result.derived.tokens_per_second;
  if (!rate || rate->value <= 0) return std::nullopt;
  const auto days = [](double tokens_per_second) { return 1e12 / tokens_per_second / 86400; };
  if (!rate->low || !rate->high || *rate->low <= 0) return Estimate{days(rate->value), {}, {}};
  return Estimate{days(rate->value), days(*rate->high), days(*rate->low)};
}

// A log may begin at step 1000, or with the mean of the first ten.
bool begins_later(const RunResult& result) {
  if (!result.steps) return false;
  const auto& numbers = result.steps->numbers;
  const auto& mean_of = result.steps->mean_of;
  return (numbers && !numbers->empty() && numbers->front() > std::max<int64_t>(1, result.steps->counts_from)) ||
         (mean_of && !mean_of->empty() && mean_of->front() > 1);
}

Value read_first_step(const RunResult& result) {
  if (result.step_times.empty() || begins_later(result)) return std::nullopt;
  return plain(result.step_times.front());
}

Value read_total_time(const RunResult& result) {
  if (!result.performance_metrics || result.performance_metrics->total_time_seconds <= 0) return std::nullopt;
  return plain(result.performance_metrics->total_time_seconds);
}

// One step's loss is noisy; the last tenth of the run (1 to 20 steps) is what it ended at.
Value read_final_loss(const RunResult& result) {
  const size_t window = std::clamp<size_t>(result.loss_values.size() / 10, 1, 20);
  double sum = 0;
  size_t count = 0;
  for (size_t i = result.loss_values.size(); i-- > 0 && count < window;)
    if (std::isfinite(result.loss_values[i])) sum += result.loss_values[i], ++count;
  return count > 0 ? Value(Estimate{sum / static_cast<double>(count), {}, {}}) : std::nullopt;
}

template <std::optional<double> (*read)(const RunResult&)>
Value read_plain(const RunResult& result) {
  return plain(read(result));
}

using enum Direction;
constexpr Metric k_metrics[] = {
    {"tokens_per_second_per_gpu", "tokens/s per device", "tokens/s", higher_is_better, MetricFormat::count,
     "tokens of the steady steps / their time / devices of the run", read_derived<&Derived::tokens_per_second_per_gpu>},
    {"tokens_per_second", "tokens/s", "tokens/s", higher_is_better, MetricFormat::count,
     "tokens of the steady steps / their time", read_derived<&Derived::tokens_per_second>},
    {"tflops_per_gpu", "model TFLOP/s per device", "TFLOP/s", higher_is_better, MetricFormat::significant,
     "tokens/s per device x model FLOPs per token (causal) / 1e12", read_derived<&Derived::tflops_per_gpu>},
    {"mfu", "MFU", "", higher_is_better, MetricFormat::percent,
     "tokens/s per device x model FLOPs per token (causal) / dense peak of one device", read_derived<&Derived::mfu>},
    {"mean_step_time", "step time, mean", "s", lower_is_better, MetricFormat::seconds,
     "time of the steady steps / their number", read_mean_step_time},
    {"median_step_time", "step time, median", "s", lower_is_better, MetricFormat::seconds, "median of the steady steps",
     read_statistic<&StepStatistics::median>},
    {"p95_step_time", "step time, 95th percentile", "s", lower_is_better, MetricFormat::seconds,
     "95th percentile of the steady steps", read_statistic<&StepStatistics::p95>},
    {"step_time_cv", "step time, variation", "", lower_is_better, MetricFormat::percent,
     "standard deviation of the steady steps / their mean", read_variation},
    {"first_step_time", "first step", "s", neither, MetricFormat::seconds,
     "time of step 1, never part of the steady state", read_first_step},
    {"total_time", "all steps", "s", neither, MetricFormat::seconds, "sum of all step times, warm-up included",
     read_total_time},
    {"peak_memory_allocated_gb", "memory allocated, peak", "GB", lower_is_better, MetricFormat::gigabytes,
     "most memory the trainer's tensors held on one device", read_memory<&MemoryMetrics::peak_memory_allocated_gb>},
    {"peak_memory_reserved_gb", "memory reserved, peak", "GB", lower_is_better, MetricFormat::gigabytes,
     "most memory the trainer's allocator held on one device", read_memory<&MemoryMetrics::peak_memory_reserved_gb>},
    {"peak_device_used_gb", "memory used, peak", "GB", lower_is_better, MetricFormat::gigabytes,
     "most memory in use on the device or by the processes, as the system saw it",
     read_memory<&MemoryMetrics::peak_device_used_gb>},
    {"mean_power", "power, mean, W", "W", lower_is_better, MetricFormat::count,
     "mean of the power samples over the steady steps", read_power},
    {"joules_per_token", "energy per token, J", "J", lower_is_better, MetricFormat::significant,
     "energy over the steady steps / their tokens", read_derived<&Derived::joules_per_token>},
    {"usd_per_1e12_tokens", "cost of 1e12 tokens, USD", "USD", lower_is_better, MetricFormat::count,
     "price per hour / tokens per hour x 1e12", read_derived<&Derived::usd_per_1e12_tokens>},
    {"days_per_1e12_tokens", "days for 1e12 tokens", "d", lower_is_better, MetricFormat::count, "1e12 / tokens per day",
     read_days},
    {"final_loss", "final loss, nats", "nats", neither, MetricFormat::significant,
     "mean loss of the last tenth of the steps, 1 to 20 of them", read_final_loss},
    {"step_time_prediction_error", "planner's error, step time", "", neither, MetricFormat::percent,
     "predicted step time / median of the steady steps - 1", read_plain<step_time_prediction_error>},
    {"memory_prediction_error", "planner's error, memory", "", neither, MetricFormat::percent,
     "predicted memory of the device that needs most / the measured - 1", read_plain<memory_prediction_error>},
};

}  // namespace

std::span<const Metric> metrics() { return k_metrics; }

const Metric* find_metric(std::string_view key) {
  const auto found =
      std::find_if(std::begin(k_metrics), std::end(k_metrics), [&](const Metric& metric) { return metric.key == key; });
  return found == std::end(k_metrics) ? nullptr : found;
}

std::string suggest_metric(std::string_view key) {
  std::vector<std::string> keys;
  for (const Metric& metric : metrics()) keys.emplace_back(metric.key);
  const std::string nearest = nearest_word(key, keys);
  return nearest.empty() ? fmt::format("choose one of {}", fmt::join(keys, ", "))
                         : fmt::format("did you mean {}?", nearest);
}

}  // namespace tprimat
