#include "stats/descriptive.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tprimat {

double mean(std::span<const double> values) {
  CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double quantile(std::span<const double> values, double probability) {
  CHECK(!values.empty() && probability >= 0 && probability <= 1);
  std::vector<double> copy(values.begin(), values.end());
  const double position = static_cast<double>(copy.size() - 1) * probability;
  const auto below = static_cast<std::ptrdiff_t>(position);
  std::nth_element(copy.begin(), copy.begin() + below, copy.end());
  const double low = copy[static_cast<size_t>(below)];
  if (below + 1 == std::ssize(copy)) return low;
  const double high = *std::min_element(copy.begin() + below + 1, copy.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

double stddev(std::span<const double> values) {
  CHECK(!values.empty());
  if (values.size() == 1) return 0;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double geometric_mean(std::span<const double> values) {
  CHECK(!values.empty());
  double sum = 0;
  for (const double value : values) {
    CHECK(value > 0);
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

double median_absolute_deviation(std::span<const double> values) {
  const double centre = median(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::fabs(value - centre));
  return median(deviations);
}

std::vector<size_t> find_outliers(std::span<const double> values, double threshold) {
  std::vector<size_t> found;
  if (values.empty()) return found;
  const double centre = median(values);
  const double scale = k_mad_to_sigma * std::max(median_absolute_deviation(values), 1e-3 * std::fabs(centre));
  for (size_t i = 0; i < values.size(); ++i)
    if (std::fabs(values[i] - centre) > threshold * scale) found.push_back(i);
  return found;
}

}  // namespace tprimat
