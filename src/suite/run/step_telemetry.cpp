#include "run/step_telemetry.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "result/summary.h"
#include "telemetry/sensor.h"

namespace tprimat::suite {
namespace {

constexpr double k_absent = std::numeric_limits<double>::quiet_NaN();
using StepFigure = std::optional<double> Reading::*;

// One sensor's readings in the order of time.
class StepReadings {
 public:
  explicit StepReadings(const SensorTrace& trace) : source_(trace.source) {
    for (const Reading& reading : trace.readings) readings_.push_back(&reading);
    std::stable_sort(readings_.begin(), readings_.end(),
                     [](const Reading* a, const Reading* b) { return a->unix_time < b->unix_time; });
  }

  const std::string& source() const { return source_; }

  // Calls `visit` for each reading that was taken within the window.
  template <class Visit>
  void visit_inside(const TimeWindow& window, Visit&& visit) const {
    for (size_t i = first_at(window.begin); i < readings_.size() && readings_[i]->unix_time <= window.end; ++i)
      visit(*readings_[i]);
  }

  // Mean of an instantaneous figure.
  double mean(StepFigure figure, const TimeWindow& window) const {
    double sum = 0.0, count = 0.0;
    visit_inside(window, [&](const Reading& reading) {
      if (reading.*figure) sum += *(reading.*figure), ++count;
    });
    return count > 0 ? sum / count : k_absent;
  }

  double highest(StepFigure figure, const TimeWindow& window) const {
    double most = k_absent;
    visit_inside(window, [&](const Reading& reading) {
      if (reading.*figure) most = std::fmax(most, *(reading.*figure));
    });
    return most;
  }

  // A utilisation covers the time since the previous reading: at least half of it must lie within the window.
  double utilisation(const TimeWindow& window) const {
    double sum = 0.0, seconds = 0.0;
    for (size_t i = std::max<size_t>(1, first_at(window.begin)); i < readings_.size(); ++i) {
      const double from = readings_[i - 1]->unix_time, to = readings_[i]->unix_time;
      if (from >= window.end) break;
      const double inside = std::min(to, window.end) - std::max(from, window.begin);
      if (!readings_[i]->utilisation || inside < 0.5 * (to - from) || inside <= 0.0) continue;
      sum += inside * *readings_[i]->utilisation, seconds += inside;
    }
    return seconds > 0.0 ? sum / seconds : k_absent;
  }

  double throttle_share(uint32_t reason, const TimeWindow& window) const {
    double held = 0.0, known = 0.0;
    visit_inside(window, [&](const Reading& reading) {
      if (reading.throttle) ++known, held += (*reading.throttle & reason) != 0;
    });
    return known > 0 ? held / known : k_absent;
  }

 private:
  size_t first_at(double time) const {
    const auto found = std::lower_bound(readings_.begin(), readings_.end(), time,
                                        [](const Reading* reading, double at) { return reading->unix_time < at; });
    return static_cast<size_t>(found - readings_.begin());
  }

  std::string source_;
  std::vector<const Reading*> readings_;
};

using Devices = std::vector<StepReadings>;

template <class Value>
std::vector<double> value_by_step(const StepWindows& windows, Value&& value) {
  std::vector<double> values;
  for (const auto& window : windows) values.push_back(window ? value(*window) : k_absent);
  return values;
}

// If steps are shorter than the time between two readings, too few have one to compare them with others.
bool has_enough_figures(const std::vector<double>& values) {
  constexpr long k_max_steps_a_figure = 20;
  const auto known = std::count_if(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  return known > 0 && k_max_steps_a_figure * known >= static_cast<long>(values.size());
}

std::optional<std::vector<double>> if_enough(std::vector<double> values) {
  return has_enough_figures(values) ? std::optional(std::move(values)) : std::nullopt;
}

// Of all devices together; absent where one of them is.
template <class Value>
double sum_over(const Devices& devices, Value&& value) {
  double sum = devices.empty() ? k_absent : 0.0;
  for (const StepReadings& device : devices) sum += value(device);
  return sum;
}

void measure_devices(StepTelemetry& telemetry, const Devices& devices, const StepWindows& windows) {
  telemetry.power_watts = if_enough(value_by_step(windows, [&](const TimeWindow& window) {
    return sum_over(devices, [&](const StepReadings& device) { return device.mean(&Reading::power_watts, window); });
  }));
  telemetry.utilisation = if_enough(value_by_step(windows, [&](const TimeWindow& window) {
    return sum_over(devices, [&](const StepReadings& device) { return device.utilisation(window); }) /
           static_cast<double>(devices.size());
  }));
  telemetry.lowest_clock_hz = if_enough(value_by_step(windows, [&](const TimeWindow& window) {
    double lowest = k_absent;
    for (const StepReadings& device : devices) lowest = std::fmin(lowest, device.mean(&Reading::clock_hz, window));
    return lowest;
  }));
  telemetry.highest_temperature_celsius = if_enough(value_by_step(windows, [&](const TimeWindow& window) {
    double highest = k_absent;
    for (const StepReadings& device : devices)
      highest = std::fmax(highest, device.highest(&Reading::temperature_celsius, window));
    return highest;
  }));
}

// The step waits for its slowest device, so the most throttled one decides.
void measure_throttling(StepTelemetry& telemetry, const Devices& devices, const StepWindows& windows) {
  for (const ThrottleName& each : k_throttle_names) {
    std::vector<double> shares = value_by_step(windows, [&](const TimeWindow& window) {
      double most = k_absent;
      for (const StepReadings& device : devices) most = std::fmax(most, device.throttle_share(each.reason, window));
      return most;
    });
    if (!has_enough_figures(shares)) continue;
    if (!telemetry.throttle_shares) telemetry.throttle_shares.emplace();
    if (std::any_of(shares.begin(), shares.end(), [](double share) { return share > 0.0; }))
      (*telemetry.throttle_shares)[std::string(each.name)] = std::move(shares);
  }
}

void measure_others(StepTelemetry& telemetry, const Devices& host, const StepWindows& windows,
                    const ThreadCounts& threads) {
  const auto find = [&](std::string_view source) {
    return std::find_if(host.begin(), host.end(), [&](const StepReadings& each) { return each.source() == source; });
  };
  const auto machine = find(k_machine_source), own = find(k_own_source);
  if (machine == host.end() || own == host.end()) return;
  telemetry.others_busy_threads = if_enough(value_by_step(windows, [&](const TimeWindow& window) {
    const BusyShares busy{machine->utilisation(window), own->utilisation(window)};
    if (std::isnan(busy.machine) || std::isnan(busy.own)) return k_absent;
    return count_others_threads(busy, threads).value_or(0.0);
  }));
}

bool has_no_figure(const StepTelemetry& telemetry) {
  return !telemetry.power_watts && !telemetry.lowest_clock_hz && !telemetry.highest_temperature_celsius &&
         !telemetry.utilisation && !telemetry.others_busy_threads && !telemetry.throttle_shares;
}

}  // namespace

std::optional<TimeWindow> certain_window(const StepEnd& end, double seconds) {
  const TimeWindow window{end.end + end.early - seconds, end.end - end.late};
  return window.seconds() > 0.0 ? std::optional(window) : std::nullopt;
}

void drop_overlapping(StepWindows& windows) {
  constexpr double k_tolerance = 0.1;  // of the shorter one
  std::vector<size_t> known, wrong;
  for (size_t i = 0; i < windows.size(); ++i)
    if (windows[i]) known.push_back(i);
  for (size_t k = 1; k < known.size(); ++k) {
    const TimeWindow &before = *windows[known[k - 1]], &after = *windows[known[k]];
    if (before.end - after.begin <= k_tolerance * std::min(before.seconds(), after.seconds())) continue;
    wrong.push_back(known[k - 1]), wrong.push_back(known[k]);
  }
  for (const size_t i : wrong) windows[i].reset();
}

StepWindows step_windows(const RunResult& result) {
  StepWindows windows(result.step_times.size());
  if (!result.reported || !result.reported->unix_time) return windows;
  const std::vector<double>& ends = *result.reported->unix_time;
  const bool whole =
      std::all_of(ends.begin(), ends.end(), [](double end) { return !std::isfinite(end) || end == std::floor(end); });
  for (size_t i = 0; i < std::min(ends.size(), windows.size()); ++i)
    if (std::isfinite(ends[i]) && is_valid_step_time(result.step_times[i]))
      windows[i] = certain_window({ends[i], 0.0, whole ? 1.0 : 0.0},
                                  result.step_times[i] * static_cast<double>(entry_span(result, i)));
  drop_overlapping(windows);
  return windows;
}

std::optional<StepTelemetry> measure_steps(const std::vector<SensorTrace>& traces, const StepWindows& windows,
                                           Platform platform, const std::optional<ThreadCounts>& threads) {
  Devices devices, host;
  for (const SensorTrace& trace : traces) (is_gpu_source(trace.source) ? devices : host).emplace_back(trace);
  if (platform == Platform::cpu) {
    devices.clear();
    std::copy_if(host.begin(), host.end(), std::back_inserter(devices),
                 [](const StepReadings& each) { return each.source() == k_own_source; });
  }
  StepTelemetry telemetry;
  measure_devices(telemetry, devices, windows);
  measure_throttling(telemetry, devices, windows);
  if (threads) measure_others(telemetry, host, windows, *threads);
  return has_no_figure(telemetry) ? std::nullopt : std::optional(telemetry);
}

}  // namespace tprimat::suite
