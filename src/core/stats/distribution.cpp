#include "stats/distribution.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tprimat {
namespace {

// Beyond this many degrees t is the normal distribution to all digits that matter.
constexpr double k_normal_from = 1e7;

// Continued fraction of the incomplete beta function, DLMF 8.17.22, by the modified method of Lentz.
double beta_fraction(double a, double b, double x) {
  constexpr double k_tiny = 1e-300, k_precision = 1e-15;
  const auto guard = [](double value) { return std::fabs(value) < k_tiny ? k_tiny : value; };
  double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int i = 1; i < 500; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    fraction *= c * d;
    if (std::fabs(c * d - 1) < k_precision) break;
  }
  return fraction;
}

// Regularised I_x(a, b) with its complement given, so that neither loses digits.
double incomplete_beta(double a, double b, double x, double complement) {
  if (x <= 0) return 0;
  if (complement <= 0) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(complement));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, complement) / b;
}

double student_t_density(double t, double v) {
  return std::exp(std::lgamma((v + 1) / 2) - std::lgamma(v / 2) - 0.5 * std::log(v * std::numbers::pi) -
                  (v + 1) / 2 * std::log1p(t * t / v));
}

// Where the search for the upper quantile starts: exact at 1 and 2 degrees, the first terms of Abramowitz and Stegun
// 26.7.5 from 3 on.
double first_guess(double tail, double v) {
  if (v < 3) {
    const double one = std::tan(std::numbers::pi * (0.5 - tail));
    const double two = (1 - 2 * tail) * std::sqrt(2 / (4 * tail * (1 - tail)));
    const double weight = std::min(1.0, 2 / v - 1);
    return weight > 0 ? std::pow(one, weight) * std::pow(two, 1 - weight) : two;
  }
  const double z = -normal_quantile(tail), z3 = z * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);
}

// t > 0 with P(T > t) = tail < 1/2: Newton's method, held within a bracket.
double upper_quantile(double tail, double v) {
  double low = 0, high = HUGE_VAL, t = first_guess(tail, v);
  for (int i = 0; i < 100; ++i) {
    const double excess = student_t_tail(t, v) - tail;
    (excess > 0 ? low : high) = t;
    const double step = excess / student_t_density(t, v);
    double next = t + step;
    if (!(next > low && next < high)) next = std::isinf(high) ? 2 * t : (low + high) / 2;
    if (std::fabs(next - t) <= 1e-12 * next) return next;
    t = next;
  }
  return t;
}

}  // namespace

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double probability) {
  CHECK(probability > 0 && probability < 1);
  double low = -38, high = 38;  // Φ(-38) is the smallest double
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_cdf(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double student_t_tail(double t, double degrees_of_freedom) {
  CHECK(degrees_of_freedom >= 1);
  if (degrees_of_freedom > k_normal_from) return normal_cdf(-t);
  const double v = degrees_of_freedom, square = t * t;
  if (std::isinf(square)) return t > 0 ? 0 : 1;
  const double half = 0.5 * incomplete_beta(v / 2, 0.5, v / (v + square), square / (v + square));
  return t >= 0 ? half : 1 - half;
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  CHECK(probability > 0 && probability < 1 && degrees_of_freedom >= 1);
  if (degrees_of_freedom > k_normal_from) return normal_quantile(probability);
  const double tail = std::min(probability, 1 - probability);
  if (tail >= 0.5 - 1e-12) return 0;
  const double quantile = upper_quantile(tail, degrees_of_freedom);
  return probability > 0.5 ? quantile : -quantile;
}

}  // namespace tprimat
