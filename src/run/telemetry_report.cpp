#include "run/telemetry_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "result/summary.h"

namespace tprimat {
namespace {

constexpr std::string_view k_machine_source = "proc:machine";
// Other processes disturb when they take a tenth of the machine and leave less than a tenth of it idle.
constexpr double k_disturbing_share = 0.1;
constexpr double k_busy_share = 0.9;

bool is_gpu(const std::string& source) {
  constexpr std::string_view k_gpu_sources[] = {"nvml:", "rocm_smi:", "nvidia-smi:", "rocm-smi:", "amd-smi:"};
  return std::any_of(std::begin(k_gpu_sources), std::end(k_gpu_sources),
                     [&](std::string_view start) { return source.starts_with(start); });
}

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
  if (from.peak_memory_bytes) to.peak_memory_used_gb = *from.peak_memory_bytes * 1e-9;
  return to;
}

void add(std::optional<double>& sum, const std::optional<double>& part) {
  sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
}

// Sums of what adds up. One device without a figure leaves the sum without it.
TelemetrySummary combine(const std::vector<TelemetrySummary>& devices) {
  TelemetrySummary all = devices.front();
  all.source = all.source.substr(0, all.source.find(':'));
  for (size_t i = 1; i < devices.size(); ++i) {
    add(all.mean_power_watts, devices[i].mean_power_watts);
    add(all.energy_joules, devices[i].energy_joules);
    add(all.mean_utilisation, devices[i].mean_utilisation);
    all.peak_memory_used_gb = std::max(all.peak_memory_used_gb, devices[i].peak_memory_used_gb);
    if (all.energy_valid.value_or(false) && !devices[i].energy_valid.value_or(false)) {
      all.energy_valid = devices[i].energy_valid;
      all.energy_note = devices[i].source + ": " + devices[i].energy_note.value_or("no energy reading");
    }
  }
  if (all.mean_utilisation) *all.mean_utilisation /= static_cast<double>(devices.size());
  if (!all.energy_joules) all.energy_valid.reset();
  return all;
}

}  // namespace

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
    const bool of_the_device = is_gpu(trace.source);
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
  std::string text;
  if (!result.memory_values.empty()) text = "allocated: the trainer's own count";
  for (const TelemetrySummary& each : result.telemetry) {
    if (!each.peak_memory_used_gb) continue;
    if (!text.empty()) text += "; ";
    text += is_gpu(each.source + ":") ? "used: device memory from " : "used: resident memory of the process tree from ";
    text += each.source;
    break;
  }
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<double> count_others_threads(const std::vector<TelemetrySummary>& telemetry,
                                           const ThreadCounts& threads) {
  const auto all = static_cast<double>(threads.machine);
  std::optional<double> machine, own;  // busy hardware threads
  for (const TelemetrySummary& each : telemetry) {
    if (each.source == k_machine_source && each.mean_utilisation) machine = *each.mean_utilisation * all;
    if (each.source == "proc" && each.mean_utilisation) own = *each.mean_utilisation * static_cast<double>(threads.run);
  }
  if (!machine || !own) return std::nullopt;
  const double others = *machine - *own;
  if (others < k_disturbing_share * all || *machine < k_busy_share * all) return std::nullopt;
  return others;
}

void note_disturbance(RunResult& result, const ThreadCounts& threads) {
  const auto others = count_others_threads(result.telemetry, threads);
  if (!others) return;
  for (TelemetrySummary& each : result.telemetry)
    if (each.source == k_machine_source) each.others_busy_threads = others;
  add_warning(result, fmt::format("other processes kept {:.1f} of {} hardware threads busy during the steady steps: "
                                  "the run was slower than it is alone",
                                  *others, threads.machine));
}

}  // namespace tprimat
