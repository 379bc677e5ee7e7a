#include "telemetry/sensor_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "telemetry/sensor.h"

namespace tprimat {
namespace {

constexpr double k_longest_gap_seconds = 5.0;
constexpr double k_longest_standstill_seconds = 5.0;  // of an energy counter; they move many times a second
constexpr double k_max_watts_of_a_sensor = 20e3;      // RAPL adds up the packages of a machine
constexpr double k_method_tolerance = 0.10;

using Figure = std::optional<double> Reading::*;

struct Point {
  double time, value;
};

std::vector<Point> points_of(const SensorTrace& trace, Figure figure) {
  std::vector<Point> points;
  for (const Reading& reading : trace.readings)
    if (reading.*figure) points.push_back({reading.unix_time, *(reading.*figure)});
  return points;
}

double interpolate(const Point& a, const Point& b, double time) {
  if (b.time <= a.time) return a.value;
  return a.value + (b.value - a.value) * std::clamp((time - a.time) / (b.time - a.time), 0.0, 1.0);
}

// The part of the series inside the window, with interpolated points at its edges.
std::vector<Point> clip(const std::vector<Point>& points, const TimeWindow& window) {
  std::vector<Point> inside;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool crosses_begin = i > 0 && points[i - 1].time < window.begin && points[i].time > window.begin;
    const bool crosses_end = i > 0 && points[i - 1].time < window.end && points[i].time > window.end;
    if (crosses_begin) inside.push_back({window.begin, interpolate(points[i - 1], points[i], window.begin)});
    if (points[i].time >= window.begin && points[i].time <= window.end) inside.push_back(points[i]);
    if (crosses_end) inside.push_back({window.end, interpolate(points[i - 1], points[i], window.end)});
  }
  return inside;
}

struct NamedFigure {
  Figure figure;
  const char* name;
};

// A mean over a few readings must not pass for one over the window.
std::optional<double> mean_inside(const SensorTrace& trace, const NamedFigure& wanted, const TimeWindow& window,
                                  std::vector<std::string>& notes) {
  double sum = 0.0;
  size_t count = 0, all = 0;
  for (const Reading& reading : trace.readings) {
    if (reading.unix_time < window.begin || reading.unix_time > window.end) continue;
    ++all;
    if (!(reading.*wanted.figure)) continue;
    sum += *(reading.*wanted.figure);
    ++count;
  }
  if (count == 0) return std::nullopt;
  if (static_cast<double>(all - count) > 1.0 + 0.1 * static_cast<double>(all)) {
    notes.push_back(
        fmt::format("mean {}: only {} of {} readings in the steady steps have it", wanted.name, count, all));
    return std::nullopt;
  }
  return sum / static_cast<double>(count);
}

std::optional<std::map<std::string, double>> throttle_inside(const SensorTrace& trace, const TimeWindow& window) {
  std::map<std::string, double> counts;
  double known = 0.0;
  for (const Reading& reading : trace.readings) {
    if (reading.unix_time < window.begin || reading.unix_time > window.end || !reading.throttle) continue;
    ++known;
    for (const ThrottleName& each : k_throttle_names)
      if ((*reading.throttle & each.reason) != 0) ++counts[std::string(each.name)];
  }
  if (known == 0.0) return std::nullopt;
  for (auto& [reason, count] : counts) count /= known;
  return counts;
}

std::optional<double> peak(const SensorTrace& trace, Figure figure) {
  std::optional<double> highest;
  for (const Point& point : points_of(trace, figure)) highest = std::max(highest.value_or(point.value), point.value);
  return highest;
}

double integrate(const std::vector<Point>& power) {
  double joules = 0.0;
  for (size_t i = 1; i < power.size(); ++i)
    joules += 0.5 * (power[i].value + power[i - 1].value) * (power[i].time - power[i - 1].time);
  return joules;
}

// Why a series does not cover the window; empty when it does.
std::string coverage_problem(const std::vector<Point>& inside, const TimeWindow& window) {
  if (inside.size() < 2) return "fewer than two readings in the steady steps";
  double gap = 0.0;
  for (size_t i = 1; i < inside.size(); ++i) gap = std::max(gap, inside[i].time - inside[i - 1].time);
  if (gap > k_longest_gap_seconds) return fmt::format("a gap of {:.1f} s between readings", gap);
  const double missing = (inside.front().time - window.begin) + (window.end - inside.back().time);
  if (missing > 0.05 * window.seconds())
    return fmt::format("readings cover all but {:.1f} s of {:.1f} s", missing, window.seconds());
  return "";
}

void set_energy(SensorSummary& summary, double joules, const std::string& problem, const std::string& method) {
  if (problem.empty()) summary.energy_joules = joules;
  summary.energy_valid = problem.empty();
  summary.energy_note = problem.empty() ? method : problem;
}

double longest_standstill(const std::vector<Point>& counter) {
  double longest = 0.0, since = counter.front().time;
  for (size_t i = 1; i < counter.size(); ++i) {
    if (counter[i].value != counter[i - 1].value) since = counter[i].time;
    longest = std::max(longest, counter[i].time - since);
  }
  return longest;
}

// Why a counter's figure is implausible; empty when it is not.
std::string counter_problem(const std::vector<Point>& counter) {
  for (size_t i = 1; i < counter.size(); ++i)
    if (counter[i].value < counter[i - 1].value)
      return fmt::format("the energy counter went back by {:.1f} J", counter[i - 1].value - counter[i].value);
  const double joules = counter.back().value - counter.front().value;
  if (joules <= 0.0) return "the energy counter did not advance";
  if (const double still = longest_standstill(counter); still > k_longest_standstill_seconds)
    return fmt::format("the energy counter stood still for {:.1f} s", still);
  const double seconds = counter.back().time - counter.front().time;
  if (joules > k_max_watts_of_a_sensor * seconds)
    return fmt::format("the energy counter implies {:.0f} kW", 1e-3 * joules / seconds);
  return "";
}

// The counter's own figure, checked against power where that is known.
void take_counter(SensorSummary& summary, const std::vector<Point>& counter, const std::vector<Point>& power,
                  const TimeWindow& window) {
  const double joules = counter.back().value - counter.front().value;
  std::string problem = coverage_problem(counter, window), method = "hardware energy counter";
  if (problem.empty() && power.size() >= 2 && coverage_problem(power, window).empty()) {
    const double integrated = integrate(power);
    if (std::fabs(integrated - joules) > k_method_tolerance * joules)
      problem = fmt::format("the energy counter reads {:.1f} J, but integrated power is {:.1f} J", joules, integrated);
    method += ", confirmed by integrated power";
  }
  set_energy(summary, joules, problem, method);
}

void summarise_energy(SensorSummary& summary, const SensorTrace& trace, const TimeWindow& window) {
  const std::vector<Point> power = clip(points_of(trace, &Reading::power_watts), window);
  const std::vector<Point> counter = clip(points_of(trace, &Reading::energy_joules), window);
  const std::string distrust = counter.size() >= 2 ? counter_problem(counter) : "";
  if (counter.size() >= 2 && distrust.empty()) return take_counter(summary, counter, power, window);
  if (power.size() >= 2)
    set_energy(summary, integrate(power), coverage_problem(power, window),
               "integrated power" + (distrust.empty() ? "" : ": " + distrust));
  else if (!distrust.empty())
    set_energy(summary, 0.0, distrust, "");
}

}  // namespace

SensorSummary summarise_readings(const SensorTrace& trace, const TimeWindow& window) {
  SensorSummary summary;
  summary.source = trace.source;
  std::vector<double> times;
  for (const Reading& reading : trace.readings)
    if (reading.unix_time >= window.begin && reading.unix_time <= window.end) times.push_back(reading.unix_time);
  summary.samples = times.size();
  if (times.size() >= 2)
    summary.interval_seconds = (times.back() - times.front()) / static_cast<double>(times.size() - 1);
  summary.notes = trace.notes;
  const auto mean = [&](const NamedFigure& wanted) { return mean_inside(trace, wanted, window, summary.notes); };
  summary.mean_utilisation = mean({&Reading::utilisation, "utilisation"});
  summary.mean_temperature_celsius = mean({&Reading::temperature_celsius, "temperature"});
  summary.mean_clock_hz = mean({&Reading::clock_hz, "clock"});
  summary.mean_memory_clock_hz = mean({&Reading::memory_clock_hz, "memory clock"});
  summary.throttle_shares = throttle_inside(trace, window);
  summary.peak_memory_bytes = peak(trace, &Reading::memory_used_bytes);
  summarise_energy(summary, trace, window);
  summary.mean_power_watts = mean({&Reading::power_watts, "power"});
  const bool from_counter = !summary.mean_power_watts && summary.energy_joules && window.seconds() > 0.0;
  if (from_counter) summary.mean_power_watts = *summary.energy_joules / window.seconds();
  return summary;
}

}  // namespace tprimat
