#include "stats/autocorrelation.h"

#include <algorithm>
#include <cmath>

#include "stats/descriptive.h"

namespace tprimat {
namespace {

double autocovariance(std::span<const double> values, double centre, size_t lag) {
  double sum = 0;
  for (size_t i = 0; i + lag < values.size(); ++i) sum += (values[i] - centre) * (values[i + lag] - centre);
  return sum / static_cast<double>(values.size());
}

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
  return std::clamp((n * autocorrelation(values, 1) + 1) / (n - 3), 0.0, 0.97);
}

}  // namespace tprimat
