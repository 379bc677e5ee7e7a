#include "stats/steady_state.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "stats/autocorrelation.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

// A later regime must hold a tenth of the steps, and three: a handful of slow steps near the end is an outlier, not a
// regime.
size_t min_regime(size_t count) { return std::max<size_t>(3, count / 10); }

// The series as the search sees it, with prefix sums for O(1) segment means.
struct Series {
  std::span<const double> raw;
  std::vector<double> values;  // drawn in
  std::vector<double> sum{0.0};
  double variance = 0;  // of one step in the later half, inflated for autocorrelation
  double mean_of(size_t begin, size_t end) const { return (sum[end] - sum[begin]) / static_cast<double>(end - begin); }
  double median_of(size_t begin, size_t end) const { return median(raw.subspan(begin, end - begin)); }
};

Series prepare_series(std::span<const double> step_times) {
  const auto tail = step_times.subspan(step_times.size() / 2);
  const double centre = median(tail);
  const double sigma = k_mad_to_sigma * std::max(median_absolute_deviation(tail), 1e-3 * std::fabs(centre));
  Series series;
  series.raw = step_times;
  for (const double value : step_times) {
    series.values.push_back(std::clamp(value, centre - 10 * sigma, centre + 10 * sigma));
    series.sum.push_back(series.sum.back() + series.values.back());
  }
  const auto drawn_in = std::span(series.values).subspan(step_times.size() / 2);
  const double memory = std::clamp(autocorrelation(drawn_in, 1), 0.0, 0.8);  // as of a first-order process
  series.variance = sigma * sigma * (1 + memory) / (1 - memory);
  return series;
}

struct Shift {
  size_t at = 0;                 // first step of the later segment
  double before = 0, after = 0;  // medians of the segments, s
};

// The split of [begin, n) that explains most, if it explains more than noise would.
std::optional<Shift> find_shift(const Series& series, size_t begin, double min_relative_change) {
  const size_t n = series.values.size();
  const double penalty = 3 * series.variance * std::log(static_cast<double>(n));
  double best_gain = penalty;
  std::optional<Shift> best;
  for (size_t at = begin + 1; at + min_regime(n) <= n; ++at) {
    const double difference = series.mean_of(begin, at) - series.mean_of(at, n);
    const double left = static_cast<double>(at - begin), right = static_cast<double>(n - at);
    const double gain = left * right / (left + right) * difference * difference;
    if (gain <= best_gain) continue;
    // The medians must move the same way: a mean moves with a few slow steps.
    const double before = series.median_of(begin, at), after = series.median_of(at, n);
    if (std::fabs(before - after) < min_relative_change * after || (before > after) != (difference > 0)) continue;
    best_gain = gain;
    best = Shift{at, before, after};
  }
  return best;
}

std::string describe(const SteadyState& found, const std::optional<Shift>& remaining) {
  char text[200];
  if (!found.steady) {
    std::snprintf(text, sizeof text, "step times %s by %.1f %% at step %zu, beyond the bound for warm-up",
                  remaining->before > remaining->after ? "fall" : "rise",
                  std::fabs(remaining->after / remaining->before - 1) * 100, remaining->at + 1);
  } else if (found.excluded <= 1) {
    return "the first step never counts; no later shift was found";
  } else {
    std::snprintf(text, sizeof text, "step times shift until step %zu; steady after it", found.excluded);
  }
  return text;
}

}  // namespace

SteadyState find_steady_state(std::span<const double> step_times, const SteadyStateOptions& options) {
  const size_t n = step_times.size();
  if (n == 0) return {0, true, "no steps"};
  SteadyState found{1, true, ""};
  std::optional<Shift> shift;
  if (n >= 6) {
    const Series series = prepare_series(step_times);
    const size_t bound = std::max<size_t>(1, std::min(options.max_excluded, n / 2));
    while ((shift = find_shift(series, found.excluded, options.min_relative_change)) && shift->at <= bound)
      found.excluded = shift->at;
    found.steady = !shift;
  }
  found.reason = describe(found, shift);
  return found;
}

}  // namespace tprimat
