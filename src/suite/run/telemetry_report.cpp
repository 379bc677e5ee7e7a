#include "run/telemetry_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "result/sampled_devices.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// Other processes disturb when they take a tenth of the machine and leave less than a tenth of it idle.
constexpr double k_disturbing_share = 0.1;
constexpr double k_busy_share = 0.9;
// A device at its power limit has its rated speed; thermal and board limits are faults.
constexpr double k_throttled_share = 0.05;

TelemetrySummary to_telemetry(const SensorSummary& from) {
  TelemetrySummary to;
  to.source = from.source;
  to.samples = static_cast<int64_t>(from.samples);
  to.interval_seconds = from.interval_seconds;
  to.mean_utilisation = from.mean_utilisation;
  to.mean_power_watts = from.mean_power_watts;
  to.energy_joules = from.energy_joules;
  to.energy_valid = from.energy_valid;
  to.energy_note = from.energy_note;
  to.mean_temperature_celsius = from.mean_temperature_celsius;
  to.mean_clock_hz = from.mean_clock_hz;
  to.mean_memory_clock_hz = from.mean_memory_clock_hz;
  to.throttle_shares = from.throttle_shares;
  if (!from.notes.empty()) to.notes = from.notes;
  if (from.peak_memory_bytes) to.peak_memory_used_gb = *from.peak_memory_bytes * 1e-9;
  return to;
}

using Summand = std::optional<double> TelemetrySummary::*;

// The sum over all devices. If one lacks the figure, there is no sum.
std::optional<double> add_up(const std::vector<TelemetrySummary>& devices, Summand figure) {
  double sum = 0.0;
  for (const TelemetrySummary& device : devices) {
    if (!(device.*figure)) return std::nullopt;
    sum += *(device.*figure);
  }
  return sum;
}

std::optional<double> mean_over(const std::vector<TelemetrySummary>& devices, Summand figure) {
  const auto sum = add_up(devices, figure);
  return sum ? std::optional(*sum / static_cast<double>(devices.size())) : std::nullopt;
}

// The first device without valid energy, and why.
void judge_energy(TelemetrySummary& all, const std::vector<TelemetrySummary>& devices) {
  bool known = false;
  for (const TelemetrySummary& device : devices) known = known || device.energy_valid;
  if (!known) return;
  all.energy_valid = true;
  all.energy_note = devices.front().energy_note;
  for (const TelemetrySummary& device : devices) {
    if (device.energy_joules && device.energy_valid.value_or(false)) continue;
    all.energy_valid = false;
    all.energy_note = device.source + ": " + device.energy_note.value_or("no energy reading");
    all.energy_joules.reset();
    return;
  }
}

// Sums of additive figures, means of the others.
TelemetrySummary combine(const std::vector<TelemetrySummary>& devices) {
  TelemetrySummary all;
  all.source = devices.front().source.substr(0, devices.front().source.find(':'));
  all.samples = devices.front().samples;
  all.interval_seconds = devices.front().interval_seconds;
  all.mean_power_watts = add_up(devices, &TelemetrySummary::mean_power_watts);
  all.energy_joules = add_up(devices, &TelemetrySummary::energy_joules);
  for (const Summand figure : {&TelemetrySummary::mean_utilisation, &TelemetrySummary::mean_temperature_celsius,
                               &TelemetrySummary::mean_clock_hz, &TelemetrySummary::mean_memory_clock_hz})
    all.*figure = mean_over(devices, figure);
  for (const TelemetrySummary& device : devices)
    all.peak_memory_used_gb = std::max(all.peak_memory_used_gb, device.peak_memory_used_gb);
  judge_energy(all, devices);
  return all;
}

}  // namespace

bool is_gpu_source(const std::string& source) {
  return source.find(':') != std::string::npos && is_device_counter(source);
}

std::optional<TimeWindow> steady_window(const RunResult& result) {
  if (!result.reported || !result.reported->unix_time) return std::nullopt;
  const std::vector<double>& ends = *result.reported->unix_time;
  const auto first = static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded));
  if (first >= ends.size() || first >= result.step_times.size()) return std::nullopt;
  const double start = first > 0 ? ends[first - 1] : ends[first] - result.step_times[first];
  if (!(ends.back() > start)) return std::nullopt;
  return TimeWindow{start, ends.back()};
}

std::vector<TelemetrySummary> report_telemetry(const std::vector<SensorTrace>& traces, const TimeWindow& window,
                                               Platform platform) {
  std::vector<TelemetrySummary> devices, host;
  for (const SensorTrace& trace : traces) {
    TelemetrySummary summary = to_telemetry(summarise_readings(trace, window));
    const bool of_the_device = is_gpu_source(trace.source);
    if (platform != Platform::cpu && !of_the_device)
      summary.peak_memory_used_gb.reset();  // memory of the host is not the device's
    (of_the_device ? devices : host).push_back(std::move(summary));
  }
  if (platform == Platform::cpu || devices.empty()) return host;
  std::vector<TelemetrySummary> all;
  if (devices.size() > 1) all.push_back(combine(devices));
  all.insert(all.end(), devices.begin(), devices.end());
  all.insert(all.end(), host.begin(), host.end());
  return all;
}

std::optional<std::string> describe_memory_sources(const RunResult& result) {
  const MemoryMetrics& memory = result.memory_metrics;
  const bool stated = memory.peak_memory_allocated_gb || memory.peak_memory_reserved_gb || memory.peak_device_used_gb;
  std::string text;
  if (!result.memory_values.empty()) text = "allocated: the trainer's own count";
  if (!result.source.steps_file && stated) text = "as the log reports it";
  for (const TelemetrySummary& each : result.telemetry) {
    if (!each.peak_memory_used_gb) continue;
    if (!text.empty()) text += "; ";
    text += is_gpu_source(each.source + ":") ? "used: device memory from "
                                             : "used: resident memory of the process tree from ";
    text += each.source;
    break;
  }
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<double> count_others_threads(const BusyShares& busy, const ThreadCounts& threads) {
  const auto all = static_cast<double>(threads.machine);
  const double machine = busy.machine * all, others = machine - busy.own * static_cast<double>(threads.run);
  if (others < k_disturbing_share * all || machine < k_busy_share * all) return std::nullopt;
  return others;
}

std::optional<double> count_others_threads(const std::vector<TelemetrySummary>& telemetry,
                                           const ThreadCounts& threads) {
  std::optional<double> machine, own;
  for (const TelemetrySummary& each : telemetry) {
    if (each.source == k_machine_source) machine = each.mean_utilisation;
    if (each.source == k_own_source) own = each.mean_utilisation;
  }
  if (!machine || !own) return std::nullopt;
  return count_others_threads(BusyShares{*machine, *own}, threads);
}

void note_throttling(RunResult& result) {
  for (const TelemetrySummary& each : result.telemetry) {
    if (!each.throttle_shares) continue;
    for (const char* reason : {"thermal", "hardware", "current"}) {
      const auto share = each.throttle_shares->find(reason);
      if (share == each.throttle_shares->end() || share->second < k_throttled_share) continue;
      add_warning(result, fmt::format("{} was throttled in {} of the steady steps ({}), which slowed the run down",
                                      each.source, format_percent(share->second, 0), reason));
    }
  }
}

void note_disturbance(RunResult& result, const ThreadCounts& threads) {
  const auto others = count_others_threads(result.telemetry, threads);
  if (!others) return;
  for (TelemetrySummary& each : result.telemetry)
    if (each.source == k_machine_source) each.others_busy_threads = others;
  add_warning(result, fmt::format("other processes kept {:.1f} of {} hardware threads busy during the steady steps and "
                                  "slowed the run down",
                                  *others, threads.machine));
}

}  // namespace tprimat::suite
