#include "report/html/step_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "result/summary.h"

namespace tprimat::results {
namespace {

constexpr int k_digits = 5;

void add_point(const RunResult& result, const std::vector<double>& series, size_t entry, StepPoints& points) {
  points.steps.push_back(step_number(result, entry));
  points.values.push_back(round_significant(series[entry], k_digits));
}

void add_extremes(const RunResult& result, const std::vector<double>& series, size_t begin, size_t end,
                  StepPoints& points) {
  std::optional<size_t> low, high;
  for (size_t at = begin; at < end; ++at) {
    if (!std::isfinite(series[at])) continue;
    if (!low || series[at] < series[*low]) low = at;
    if (!high || series[at] > series[*high]) high = at;
  }
  if (!low) return;
  add_point(result, series, std::min(*low, *high), points);
  if (low != high) add_point(result, series, std::max(*low, *high), points);
}

}  // namespace

double round_significant(double value, int digits) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

StepPoints thin_series(const RunResult& result, const std::vector<double>& series) {
  StepPoints points;
  points.recorded = series.size();
  if (series.size() <= k_max_drawn_points) {
    for (size_t i = 0; i < series.size(); ++i) add_point(result, series, i, points);
    return points;
  }
  constexpr size_t k_buckets = k_max_drawn_points / 2;
  for (size_t bucket = 0; bucket < k_buckets; ++bucket)
    add_extremes(result, series, bucket * series.size() / k_buckets, (bucket + 1) * series.size() / k_buckets, points);
  return points;
}

}  // namespace tprimat::results
