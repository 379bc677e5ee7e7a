#include "stats/autocorrelation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/descriptive.h"

namespace tprimat {
namespace {

double autocovariance(std::span<const double> values, double centre, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - centre) * (values[i + lag] - centre);
  return sum / static_cast<double>(values.size());
}

// The smallest lag after which five correlations in a row are within the noise, 2·sqrt(log10 n / n); nothing beyond
// max_lag.
size_t memory_length(const std::vector<double>& covariances, size_t count, size_t max_lag) {
  constexpr size_t k_quiet_lags = 5;
  const double n = static_cast<double>(count);
  const double noise = 2 * std::sqrt(std::log10(n) / n);
  size_t quiet = 0;
  for (size_t lag = 1; lag < covariances.size(); ++lag) {
    quiet = std::fabs(covariances[lag] / covariances[0]) < noise ? quiet + 1 : 0;
    if (quiet == k_quiet_lags) return std::max<size_t>(1, lag - k_quiet_lags);
  }
  return max_lag;
}

// Trapezoid window of Politis and Romano (1995).
double flat_top(double t) { return t <= 0.5 ? 1.0 : std::max(0.0, 2 * (1 - t)); }

}  // namespace

double autocorrelation(std::span<const double> values, size_t lag) {
  if (lag >= values.size()) return 0;
  const double centre = mean(values);
  const double variance = autocovariance(values, centre, 0);
  return variance > 0 ? autocovariance(values, centre, lag) / variance : 0;
}

double first_order_memory(std::span<const double> values) {
  if (values.size() < 5) return 0;
  const double n = static_cast<double>(values.size());
  return std::clamp((n * autocorrelation(values, 1) + 1) / (n - 3), 0.0, 0.9);
}

size_t block_length(std::span<const double> values) {
  const size_t count = values.size();
  if (count < 8) return 1;
  const double n = static_cast<double>(count);
  const size_t most = count / 4;
  const size_t least = count < 27 ? 1 : std::min(most, static_cast<size_t>(std::cbrt(n)));
  const size_t max_lag = std::min(count - 1, static_cast<size_t>(std::ceil(std::sqrt(n))) + 5);
  const double centre = mean(values);
  std::vector<double> covariances;
  for (size_t lag = 0; lag <= max_lag; ++lag) covariances.push_back(autocovariance(values, centre, lag));
  if (covariances[0] <= 0) return least;

  const size_t reach = std::min(2 * memory_length(covariances, count, max_lag), max_lag);
  double spectrum = covariances[0], slope = 0;  // g(0) and G of the paper
  for (size_t lag = 1; lag <= reach; ++lag) {
    const double weighted = 2 * flat_top(static_cast<double>(lag) / static_cast<double>(reach)) * covariances[lag];
    spectrum += weighted;
    slope += static_cast<double>(lag) * weighted;
  }
  if (spectrum <= 0) return least;
  const double length = std::cbrt(2 * slope * slope / (4.0 / 3.0 * spectrum * spectrum) * n);
  return std::clamp(static_cast<size_t>(std::ceil(std::min(length, n))), least, most);
}

}  // namespace tprimat
