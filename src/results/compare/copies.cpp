#include "compare/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

// Bit by bit, so that NaNs are equal.
std::string_view bytes_of(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

void append_series(std::string& key, const std::vector<double>& values) {
  key += fmt::format("{}:", values.size());
  key += bytes_of(values);
}

// A figure that a log omits is a NaN, and NaNs are not equal.
std::vector<double> known_of(const std::vector<double>& times) {
  std::vector<double> known;
  std::ranges::copy_if(times, std::back_inserter(known), [](double v) { return std::isfinite(v); });
  return known;
}

constexpr size_t k_enough_values = 5;

// The unit of the last decimal place that any value needs; nearly 0 for unrounded values.
double rounding_of(const std::vector<double>& times) {
  constexpr int k_max_places = 9;
  for (int places = 0; places <= k_max_places; ++places) {
    const double scale = std::pow(10, places);
    const bool fits = std::ranges::all_of(times, [&](double seconds) {
      const double units = seconds * scale;
      return !std::isfinite(seconds) || std::fabs(units - std::round(units)) <= 1e-9 + 1e-12 * std::fabs(units);
    });
    if (fits) return 1 / scale;
  }
  return 0;
}

std::vector<double> changes_between(const std::vector<double>& times) {
  std::vector<double> changes;
  for (size_t i = 1; i < times.size(); ++i)
    if (const double change = times[i] - times[i - 1]; std::isfinite(change)) changes.push_back(change);
  return changes;
}

// Seconds, milliseconds, microseconds, nanoseconds, minutes: possible factors between two series.
std::optional<double> unit_between(double a, double b) {
  constexpr double k_apart = 1.5;
  for (const double unit : {1.0, 1e3, 1e-3, 60.0, 1 / 60.0, 1e6, 1e-6, 1e9, 1e-9}) {
    const double ratio = a / (b * unit);
    if (ratio < k_apart && ratio > 1 / k_apart) return unit;
  }
  return std::nullopt;
}

struct Series {
  const std::vector<double>& times;
  const SeriesTrace& trace;
};

// Single precision keeps seven digits.
double tolerance_between(const Series& longer, const Series& shorter, double unit) {
  return std::max({longer.trace.rounding, shorter.trace.rounding * unit, 1e-6 * longer.trace.typical}) * 1.001;
}

// Of 16 steps spread over the series half must agree, or the place is not looked at further.
bool may_lie_at(const Series& longer, const Series& shorter, size_t place, double unit, double tolerance) {
  constexpr size_t k_probes = 16;
  const size_t n = shorter.times.size(), probes = std::min(k_probes, n);
  size_t agreeing = 0;
  for (size_t i = 0; i < probes; ++i) {
    const size_t at = i * n / probes;
    agreeing += std::fabs(longer.times[place + at] - shorter.times[at] * unit) <= tolerance;
  }
  return 2 * agreeing >= probes;
}

bool lies_in(const Series& longer, const Series& shorter, double unit) {
  constexpr double k_beyond_chance = 30;  // nats
  const size_t n = shorter.times.size(), places = longer.times.size() - n + 1;
  const double tolerance = tolerance_between(longer, shorter, unit);
  const double variation = std::min(longer.trace.variation, shorter.trace.variation * unit);
  if (!(variation > 4 * tolerance)) return false;  // independent runs agree often enough
  const double p = 2 * tolerance / variation;
  for (size_t place = 0; place < places; ++place) {
    if (!may_lie_at(longer, shorter, place, unit, tolerance)) continue;
    size_t agreeing = 0;
    for (size_t i = 0; i < n; ++i)
      agreeing += std::fabs(longer.times[place + i] - shorter.times[i] * unit) <= tolerance;
    if (2 * agreeing >= n && surprise(static_cast<double>(agreeing), static_cast<double>(n), p) >=
                                 k_beyond_chance + std::log(static_cast<double>(places)))
      return true;
  }
  return false;
}

// Without repetitions of the value before.
std::vector<double> moves_of(const std::vector<double>& times) {
  std::vector<double> moves;
  for (const double seconds : times)
    if (std::isfinite(seconds) && (moves.empty() || moves.back() != seconds)) moves.push_back(seconds);
  return moves;
}

std::vector<double> different_of(std::vector<double> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

SeriesTrace trace_of(const LoadedRun& run) { return run.trace ? *run.trace : trace_steps(run.result.step_times); }

// Order by completeness: more steps that do not repeat the one before, then more digits.
bool is_fuller(const LoadedRun& a, const LoadedRun& b) {
  const SeriesTrace &x = *a.trace, &y = *b.trace;
  return x.moves != y.moves ? x.moves > y.moves : x.rounding < y.rounding;
}

// Above this many pairs of runs only exact copies are found: comparing all pairs would take minutes.
constexpr size_t k_max_searched_pairs = 250'000;

std::string averages_of(const RunResult& result) {
  if (!result.performance_metrics) return "";
  const auto show = [](const std::optional<double>& figure) { return figure ? fmt::format("{}", *figure) : "unknown"; };
  return fmt::format("{} {}", show(result.performance_metrics->avg_step_time_seconds),
                     show(result.performance_metrics->tokens_per_second));
}

}  // namespace

std::string measurement_key(const RunResult& result) {
  constexpr size_t k_once = 20;  // so many different values occur together only once, in any order
  std::vector<double> sorted = known_of(result.step_times);
  std::ranges::sort(sorted);
  const size_t different = different_of(sorted).size();
  std::string key;
  append_series(key, different >= k_once ? sorted : result.step_times);
  if (different >= k_enough_values) return key;
  append_series(key, result.loss_values);
  const std::string averages = averages_of(result);
  if (result.timestamp.empty() || (result.step_times.empty() && averages.empty())) return "";
  return key + result.timestamp + (result.step_times.empty() ? averages : "");
}

bool SeriesTrace::is_various() const { return values.size() >= k_enough_values; }

SeriesTrace trace_steps(const std::vector<double>& step_times) {
  SeriesTrace trace;
  trace.moves = moves_of(step_times).size();
  trace.values = different_of(known_of(step_times));
  if (!trace.is_various()) return trace;
  trace.repeated = static_cast<double>(trace.moves - trace.values.size()) / static_cast<double>(trace.moves);
  trace.spread = k_mad_to_sigma * median_absolute_deviation(trace.values);
  trace.typical = median(known_of(step_times));
  trace.rounding = rounding_of(step_times);
  trace.variation = k_mad_to_sigma * median_absolute_deviation(changes_between(step_times));
  return trace;
}

bool is_copy(const RunResult& a, const SeriesTrace& trace_a, const RunResult& b, const SeriesTrace& trace_b) {
  if (!trace_a.is_various() || !trace_b.is_various()) return false;
  if (shares_clock(a, b)) return true;
  const Series one{a.step_times, trace_a}, two{b.step_times, trace_b};
  const bool first_is_longer = one.times.size() >= two.times.size();
  const Series &longer = first_is_longer ? one : two, &shorter = first_is_longer ? two : one;
  const auto unit = unit_between(longer.trace.typical, shorter.trace.typical);
  if (!unit) return false;
  if (lies_in(longer, shorter, *unit)) return true;
  const double tolerance = tolerance_between(longer, shorter, *unit);
  const SeriesPair pair{longer.times, shorter.times, longer.trace, shorter.trace, *unit, tolerance};
  return shares_values(pair) || shares_changes(pair);
}

std::vector<SameMeasurement> find_same_measurements(const Contender& reference, const Contender& subject) {
  const bool is_exact_only = reference.runs.size() * subject.runs.size() > k_max_searched_pairs;
  std::map<std::string_view, const LoadedRun*> originals;  // by step times
  for (const LoadedRun& run : reference.runs) originals.try_emplace(bytes_of(run.result.step_times), &run);
  std::vector<SeriesTrace> traces;
  if (!is_exact_only)
    for (const LoadedRun& run : reference.runs) traces.push_back(trace_of(run));
  std::vector<SameMeasurement> same;
  for (const LoadedRun& run : subject.runs) {
    const SeriesTrace trace = trace_of(run);
    const auto exact = originals.find(bytes_of(run.result.step_times));
    if (exact != originals.end() && trace.is_various()) {
      same.push_back({exact->second, &run});
      continue;
    }
    if (is_exact_only) continue;
    for (size_t i = 0; i < traces.size(); ++i) {
      if (!is_copy(reference.runs[i].result, traces[i], run.result, trace)) continue;
      same.push_back({&reference.runs[i], &run});
      break;
    }
  }
  return same;
}

namespace {

void set_exact_copies_aside(Contender& contender) {
  std::vector<LoadedRun> kept;
  std::map<std::string, std::string> originals;  // measurement to path
  for (LoadedRun& run : contender.runs) {
    const std::string key = measurement_key(run.result);
    const auto [original, is_first] = originals.try_emplace(key, run.path);
    if (is_first || key.empty())
      kept.push_back(std::move(run));
    else
      contender.copies.push_back(fmt::format("{} of {}", run.path, original->second));
  }
  contender.runs = std::move(kept);
}

// The index of a more complete run that holds `run`, else its own.
size_t original_of(const std::vector<LoadedRun>& runs, size_t run) {
  size_t original = run;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool comes_first =
        is_fuller(runs[i], runs[original]) || (i < original && !is_fuller(runs[original], runs[i]));
    if (i != run && comes_first && is_copy(runs[i].result, *runs[i].trace, runs[run].result, *runs[run].trace))
      original = i;
  }
  return original;
}

void set_near_copies_aside(Contender& contender) {
  std::vector<LoadedRun>& runs = contender.runs;
  if (runs.size() < 2 || runs.size() * runs.size() > k_max_searched_pairs) return;
  std::vector<bool> is_kept(runs.size(), true);
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t original = original_of(runs, i);
    if (original == i) continue;
    is_kept[i] = false;
    contender.copies.push_back(fmt::format("{} of {}", runs[i].path, runs[original].path));
  }
  std::vector<LoadedRun> kept;
  for (size_t i = 0; i < runs.size(); ++i)
    if (is_kept[i]) kept.push_back(std::move(runs[i]));
  runs = std::move(kept);
}

}  // namespace

void set_copies_aside(Contender& contender) {
  set_exact_copies_aside(contender);
  for (LoadedRun& run : contender.runs) run.trace = trace_steps(run.result.step_times);
  set_near_copies_aside(contender);
}

}  // namespace tprimat::results
