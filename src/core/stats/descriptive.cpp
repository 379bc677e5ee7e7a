#include "stats/descriptive.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tprimat {
namespace {

double autocovariance(std::span<const double> values, double centre, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - centre) * (values[i + lag] - centre);
  return sum / static_cast<double>(values.size());
}

double median_deviation(std::span<const double> values, double centre) {
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::fabs(value - centre));
  return median(deviations);
}

}  // namespace

double mean(std::span<const double> values) {
  CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double quantile(std::span<const double> values, double probability) {
  return quantiles(values, std::span(&probability, 1)).front();
}

std::vector<double> quantiles(std::span<const double> values, std::span<const double> probabilities) {
  CHECK(!values.empty());
  std::vector<double> copy(values.begin(), values.end()), found;
  auto rest = copy.begin();  // nothing before it is larger than what follows
  for (const double probability : probabilities) {
    CHECK(probability >= 0 && probability <= 1);
    const double position = static_cast<double>(copy.size() - 1) * probability;
    const auto below = copy.begin() + static_cast<std::ptrdiff_t>(position);
    CHECK(rest <= below);
    std::nth_element(rest, below, copy.end());
    rest = below;
    found.push_back(*below);
    if (below + 1 == copy.end()) continue;
    const double next = *std::min_element(below + 1, copy.end());
    found.back() += (position - std::floor(position)) * (next - *below);
  }
  return found;
}

double stddev(std::span<const double> values) {
  CHECK(!values.empty());
  if (values.size() == 1) return 0;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double median_absolute_deviation(std::span<const double> values) { return median_deviation(values, median(values)); }

std::vector<size_t> find_outliers(std::span<const double> values, double threshold) {
  std::vector<size_t> found;
  if (values.empty()) return found;
  const double centre = median(values);
  const double scale = k_mad_to_sigma * std::max(median_deviation(values, centre), 1e-3 * std::fabs(centre));
  for (size_t i = 0; i < values.size(); ++i)
    if (std::fabs(values[i] - centre) > threshold * scale) found.push_back(i);
  return found;
}

double autocorrelation(std::span<const double> values, size_t lag) {
  if (lag >= values.size()) return 0;
  const double centre = mean(values);
  const double variance = autocovariance(values, centre, 0);
  return variance > 0 ? autocovariance(values, centre, lag) / variance : 0;
}

double first_order_memory(std::span<const double> values) {
  if (values.size() < 5) return 0;
  const double n = static_cast<double>(values.size());
  return std::clamp((n * autocorrelation(values, 1) + 1) / (n - 3), 0.0, 0.97);
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = (static_cast<double>(first + end) + 1) / 2;
    first = end;
  }
  return ranks;
}

double spearman(std::span<const double> left, std::span<const double> right) {
  CHECK(left.size() == right.size());
  if (left.empty()) return 0;
  const std::vector<double> a = ranks_of(left), b = ranks_of(right);
  const double middle = mean(a);  // of both
  double together = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    together += (a[i] - middle) * (b[i] - middle);
    of_a += (a[i] - middle) * (a[i] - middle), of_b += (b[i] - middle) * (b[i] - middle);
  }
  return of_a > 0 && of_b > 0 ? together / std::sqrt(of_a * of_b) : 0;
}

}  // namespace tprimat
