#include "stats/change_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "stats/descriptive.h"

namespace tprimat {
namespace {

// For the correlation of neighbours, as of a first-order process.
double inflate(double variance, std::span<const double> values) {
  const double memory = std::clamp(autocorrelation(values, 1), 0.0, 0.8);
  return variance * (1 + memory) / (1 - memory);
}

double noise_of(std::span<const double> values) {
  std::vector<double> differences;
  for (size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  const double sigma = k_mad_to_sigma * median_absolute_deviation(differences) / std::numbers::sqrt2;
  return std::max(sigma, 1e-4 * std::fabs(median(values)));  // a floor for figures that hardly vary
}

std::vector<double> draw_in(std::span<const double> values, double sigma) {
  std::vector<double> drawn;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = std::min(i - std::min<size_t>(i, 2), values.size() - 5);
    const double centre = median(values.subspan(begin, 5));
    drawn.push_back(std::clamp(values[i], centre - 3 * sigma, centre + 3 * sigma));
  }
  return drawn;
}

// Sums for the squared error of any segment in O(1).
class SquaredError {
 public:
  explicit SquaredError(const std::vector<double>& values) : sum_{0}, squares_{0} {
    const double centre = mean(values);  // keeps the sums small
    for (const double value : values) {
      sum_.push_back(sum_.back() + value - centre);
      squares_.push_back(squares_.back() + (value - centre) * (value - centre));
    }
  }
  double of(size_t begin, size_t end) const {
    const double sum = sum_[end] - sum_[begin];
    return squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin);
  }

 private:
  std::vector<double> sum_, squares_;
};

// Starts of the segments after the first.
std::vector<size_t> segment(const std::vector<double>& values, double price, size_t shortest) {
  const SquaredError error(values);
  const size_t n = values.size();
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> previous(n + 1, 0), starts{0};
  best[0] = -price;
  for (size_t end = shortest; end <= n; ++end) {
    if (end >= 2 * shortest) starts.push_back(end - shortest);
    for (const size_t start : starts) {
      const double cost = best[start] + error.of(start, end) + price;
      if (cost < best[end]) best[end] = cost, previous[end] = start;
    }
    std::erase_if(starts, [&](size_t start) { return best[start] + error.of(start, end) > best[end]; });
  }
  std::vector<size_t> shifts;
  for (size_t at = previous[n]; at > 0; at = previous[at]) shifts.push_back(at);
  std::reverse(shifts.begin(), shifts.end());
  return shifts;
}

std::vector<LevelShift> describe_shifts(std::span<const double> values, const std::vector<size_t>& shifts) {
  std::vector<LevelShift> described;
  for (size_t i = 0; i < shifts.size(); ++i) {
    const size_t begin = i > 0 ? shifts[i - 1] : 0, end = i + 1 < shifts.size() ? shifts[i + 1] : values.size();
    described.push_back({shifts[i], median(values.subspan(begin, shifts[i] - begin)),
                         median(values.subspan(shifts[i], end - shifts[i]))});
  }
  return described;
}

double relative_change(const LevelShift& shift) {
  return std::fabs(shift.after - shift.before) / std::max(std::fabs(shift.before), std::numeric_limits<double>::min());
}

std::vector<double> residuals_of(const std::vector<double>& values, const std::vector<size_t>& shifts) {
  std::vector<double> residuals;
  for (size_t i = 0; i <= shifts.size(); ++i) {
    const size_t begin = i > 0 ? shifts[i - 1] : 0, end = i < shifts.size() ? shifts[i] : values.size();
    const double centre = mean(std::span(values).subspan(begin, end - begin));
    for (size_t k = begin; k < end; ++k) residuals.push_back(values[k] - centre);
  }
  return residuals;
}

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
  series.variance = inflate(sigma * sigma, drawn_in);
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
  if (!found.steady)
    return fmt::format("step times {} by {:.1f} % at step {}, beyond the bound for warm-up",
                       remaining->before > remaining->after ? "fall" : "rise",
                       std::fabs(remaining->after / remaining->before - 1) * 100, remaining->at + 1);
  if (found.excluded <= 1) return "the first step never counts; no later shift was found";
  return fmt::format("step times shift until step {}; steady after it", found.excluded);
}

}  // namespace

std::vector<LevelShift> find_level_shifts(std::span<const double> values, const ChangePointOptions& options) {
  const size_t shortest = std::max<size_t>(2, options.min_segment);
  if (values.size() < std::max<size_t>(5, 2 * shortest)) return {};
  const double sigma = noise_of(values);
  const std::vector<double> drawn = draw_in(values, sigma);
  const double price = 3 * sigma * sigma * std::log(static_cast<double>(values.size()));
  const std::vector<double> residuals = residuals_of(drawn, segment(drawn, price, shortest));
  std::vector<size_t> at = segment(drawn, inflate(price, residuals), shortest);
  while (true) {
    const std::vector<LevelShift> shifts = describe_shifts(values, at);
    const auto smallest = std::min_element(shifts.begin(), shifts.end(), [](const auto& a, const auto& b) {
      return relative_change(a) < relative_change(b);
    });
    if (smallest == shifts.end() || relative_change(*smallest) >= options.min_relative_change) return shifts;
    at.erase(at.begin() + (smallest - shifts.begin()));
  }
}

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
