#include "compare/figure_meanings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "result/metrics.h"
#include "result/peak.h"
#include "result/sampled_devices.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

bool has_kind(const MemoryMetrics& memory) {
  return memory.peak_memory_allocated_gb || memory.peak_memory_reserved_gb || memory.peak_device_used_gb;
}

std::string describe_source(const RunResult& run, const TelemetrySummary& entry) {
  const std::string name = entry.source.substr(0, entry.source.find(':'));
  const int64_t devices = devices_of(run, entry);
  return fmt::format("{} of {} device{}", is_device_counter(entry.source) ? "the counters" : name, devices,
                     devices == 1 ? "" : "s");
}

bool is_one_device(const RunResult& a, const RunResult& b) {
  return !a.gpu_info.device_name.empty() && a.gpu_info.device_name == b.gpu_info.device_name;
}

}  // namespace

// The number of detected warm-up steps varies from run to run, a fixed one does not.
Text warmup_rule(const RunResult& run) {
  if (run.warmup.method == WarmupMethod::none) return std::nullopt;
  return run.warmup.method == WarmupMethod::fixed ? fmt::format("fixed, {}", run.warmup.steps_excluded) : "detected";
}

Text record_span(const RunResult& run) {
  if (run.step_times.empty()) return std::nullopt;
  return fmt::format("{}", usual_span(run));
}

Text total_steps(const RunResult& run) {
  if (!run.performance_metrics || !(run.performance_metrics->total_time_seconds > 0)) return std::nullopt;
  return fmt::format("{}", run.performance_metrics->total_steps);
}

// Steps behind the final loss; a log of every tenth step averages others.
Text loss_steps(const RunResult& run) {
  if (run.loss_values.empty()) return std::nullopt;
  return fmt::format("the mean of the last {} of {} steps",
                     static_cast<int64_t>(final_loss_window(run)) * usual_span(run),
                     std::max<int64_t>(steps_reached(run), std::ssize(run.loss_values)));
}

Text power_source(const RunResult& run) {
  for (const TelemetrySummary& each : run.telemetry)
    if (each.mean_power_watts) return describe_source(run, each);
  return std::nullopt;
}

Text energy_source(const RunResult& run) {
  const TelemetrySummary* sensor = find_energy(run);
  return sensor == nullptr ? std::nullopt : Text(describe_source(run, *sensor));
}

// A device counter reports memory in use on the device, the system reports memory of the processes.
Text memory_source(const RunResult& run) {
  for (const TelemetrySummary& each : run.telemetry)
    if (each.peak_memory_used_gb) return is_device_counter(each.source) ? "the device" : "the processes";
  return std::nullopt;
}

Text formula(const RunResult& run) {
  const std::string& id = run.derived.headline_formula;
  return id.empty() ? std::nullopt : Text(id);
}

// "catalogue", "measured" or "config": the part of the peak's id before the first colon.
Text peak_kind(const RunResult& run) {
  return run.derived.peak ? Text(run.derived.peak->id.substr(0, run.derived.peak->id.find(':'))) : std::nullopt;
}

Shown check_memory(const RunResult& a, const RunResult& b) {
  const MemoryMetrics &x = a.memory_metrics, &y = b.memory_metrics;
  if (const Shown methods = show_difference("measured by", x.measurement_method, y.measurement_method)) return methods;
  const bool common = (x.peak_memory_allocated_gb && y.peak_memory_allocated_gb) ||
                      (x.peak_memory_reserved_gb && y.peak_memory_reserved_gb) ||
                      (x.peak_device_used_gb && y.peak_device_used_gb);
  const bool is_recorded = has_kind(x) && has_kind(y);
  return is_recorded && !common ? Shown("no kind of memory was recorded on both sides") : std::nullopt;
}

Shown check_price(const RunResult& a, const RunResult& b) {
  constexpr double k_rounding = 0.01;
  const auto x = device_price(a), y = device_price(b);
  if (!x || !y || !is_one_device(a, b)) return std::nullopt;
  if (std::fabs(*x - *y) <= k_rounding * std::max(std::fabs(*x), std::fabs(*y))) return std::nullopt;
  return show_difference("USD per device-hour", x, y);
}

// A measured peak varies with the machine; a configured or catalogue peak is one number for one device.
Shown check_peak_value(const RunResult& a, const RunResult& b) {
  if (!a.derived.peak || !b.derived.peak || peak_kind(a) != peak_kind(b)) return std::nullopt;
  if (!is_one_device(a, b) || a.precision != b.precision || is_measured(*a.derived.peak)) return std::nullopt;
  return show_difference("TFLOP/s", std::optional(a.derived.peak->flops_per_second / 1e12),
                         std::optional(b.derived.peak->flops_per_second / 1e12));
}

std::string state_meanings(const RunResult& run) {
  const MemoryMetrics& memory = run.memory_metrics;
  std::string text = fmt::format("{}{}{}", memory.peak_memory_allocated_gb.has_value(),
                                 memory.peak_memory_reserved_gb.has_value(), memory.peak_device_used_gb.has_value());
  for (const Text& each :
       {memory.measurement_method, warmup_rule(run), record_span(run), total_steps(run), loss_steps(run),
        power_source(run), energy_source(run), memory_source(run), formula(run), peak_kind(run)})
    text += "|" + each.value_or("");
  const auto price = device_price(run);
  const bool is_one_number = run.derived.peak && !is_measured(*run.derived.peak);
  return text + fmt::format("|{}|{}", price.value_or(0), is_one_number ? run.derived.peak->flops_per_second : 0);
}

std::optional<double> device_price(const RunResult& run) {
  const auto devices = device_count(run);
  if (!devices || !run.derived.usd_per_hour) return std::nullopt;
  return *run.derived.usd_per_hour / static_cast<double>(*devices);
}

int64_t devices_of(const RunResult& run, const TelemetrySummary& entry) {
  if (entry.source.find(':') != std::string::npos) return 1;
  const int64_t sampled = sampled_devices(run, entry).value_or(0);
  return sampled > 0 ? sampled : device_count(run).value_or(1);
}

}  // namespace tprimat::results
