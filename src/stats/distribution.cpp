#include "stats/distribution.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tprimat {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double probability) {
  CHECK(probability > 0 && probability < 1);
  double low = -38, high = 38;  // Φ(-38) is the smallest double
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  CHECK(probability > 0 && probability < 1 && degrees_of_freedom >= 1);
  const double v = degrees_of_freedom;
  if (v == 1) return std::tan(std::numbers::pi * (probability - 0.5));
  if (v == 2) return (2 * probability - 1) * std::sqrt(2 / (4 * probability * (1 - probability)));
  const double z = normal_quantile(probability);
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
  const double g1 = (z3 + z) / 4;
  const double g2 = (5 * z5 + 16 * z3 + 3 * z) / 96;
  const double g3 = (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384;
  const double g4 = (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / 92160;
  return z + g1 / v + g2 / (v * v) + g3 / (v * v * v) + g4 / (v * v * v * v);
}

}  // namespace tprimat
