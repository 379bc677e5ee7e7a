#include "telemetry/sensor_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tprimat {
namespace {

constexpr double k_longest_gap_seconds = 5.0;
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

std::optional<double> mean_inside(const SensorTrace& trace, Figure figure, const TimeWindow& window) {
  double sum = 0.0;
  int count = 0;
  for (const Point& point : points_of(trace, figure)) {
    if (point.time < window.begin || point.time > window.end) continue;
    sum += point.value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
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
  summary.energy_joules = joules;
  summary.energy_valid = problem.empty();
  summary.energy_note = problem.empty() ? method : problem;
}

void summarise_energy(SensorSummary& summary, const SensorTrace& trace, const TimeWindow& window) {
  const std::vector<Point> power = clip(points_of(trace, &Reading::power_watts), window);
  const std::vector<Point> counter = clip(points_of(trace, &Reading::energy_joules), window);
  if (counter.size() >= 2) {
    const double joules = counter.back().value - counter.front().value;
    std::string problem = coverage_problem(counter, window), method = "hardware energy counter";
    if (joules <= 0.0) problem = "the energy counter did not advance";
    if (problem.empty() && power.size() >= 2 && coverage_problem(power, window).empty()) {
      const double integrated = integrate(power);
      if (std::fabs(integrated - joules) > k_method_tolerance * joules)
        problem = fmt::format("the energy counter says {:.1f} J but integrated power {:.1f} J", joules, integrated);
      method += ", confirmed by integrated power";
    }
    set_energy(summary, joules, problem, method);
  } else if (power.size() >= 2) {
    set_energy(summary, integrate(power), coverage_problem(power, window), "integrated power");
  }
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
  summary.mean_utilisation = mean_inside(trace, &Reading::utilisation, window);
  summary.mean_temperature_celsius = mean_inside(trace, &Reading::temperature_celsius, window);
  summary.mean_clock_hz = mean_inside(trace, &Reading::clock_hz, window);
  summary.peak_memory_bytes = peak(trace, &Reading::memory_used_bytes);
  summarise_energy(summary, trace, window);
  summary.mean_power_watts = mean_inside(trace, &Reading::power_watts, window);
  const bool from_counter = !summary.mean_power_watts && summary.energy_valid.value_or(false) && window.seconds() > 0.0;
  if (from_counter) summary.mean_power_watts = *summary.energy_joules / window.seconds();
  return summary;
}

}  // namespace tprimat
