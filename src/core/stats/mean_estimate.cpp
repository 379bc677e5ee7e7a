#include "stats/mean_estimate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stats/descriptive.h"
#include "stats/distribution.h"

namespace tprimat {
namespace {

// Weights of the cosines: 1 for the first, the last one counts in part so that nothing jumps. Their sum, B, is half of
// the independent values that a first-order process leaves whose memory is two standard errors longer than the series
// shows, and no more than 0.41·n^(2/3), after the rule of Lazarus et al. (0.4) for series with little memory.
std::vector<double> weigh_cosines(double n, double memory) {
  constexpr double k_min = 1.25;  // chosen with the half by the simulation in docs/method.md
  const double doubt = 2 * std::sqrt((1 - memory * memory) / n);
  const double worst = std::min(memory + doubt, 0.99);
  const double independent = n * (1 - worst) / (1 + worst);
  const double most = std::max(k_min, 0.41 * std::pow(n, 2.0 / 3));
  double rest = std::clamp(0.5 * independent, k_min, most);
  std::vector<double> weights;
  for (; rest > 0; rest -= 1) weights.push_back(std::min(rest, 1.0));
  return weights;
}

// Squares of the first cosine coefficients, sqrt(2/n)·Σ (x_t − mean)·cos(πj(t + ½)/n), j = 1 .. count. The cosines of
// successive t follow from each other: cos((t+1)w) = 2·cos(w)·cos(tw) − cos((t−1)w).
// Several frequencies are summed at once, so that their state stays in registers.
using Four [[gnu::vector_size(32)]] = double;
using Eight [[gnu::vector_size(64)]] = double;

template <class Vector, size_t vectors>
[[gnu::always_inline]] inline void sum_cosines(std::span<const double> values, double centre, size_t first,
                                               double* sums) {
  const double n = static_cast<double>(values.size());
  constexpr size_t lanes = sizeof(Vector) / sizeof(double);
  Vector sum[vectors] = {}, twice[vectors], now[vectors], before[vectors];
  for (size_t k = 0; k < vectors; ++k)
    for (size_t i = 0; i < lanes; ++i) {
      const double frequency = std::numbers::pi * static_cast<double>(first + lanes * k + i + 1) / n;
      twice[k][i] = 2 * std::cos(frequency);
      now[k][i] = before[k][i] = std::cos(frequency / 2);  // at t = 0, and at t = -1 by symmetry
    }
  for (const double value : values) {
    const double deviation = value - centre;
#pragma GCC unroll 6
    for (size_t k = 0; k < vectors; ++k) {
      sum[k] += deviation * now[k];
      const Vector next = twice[k] * now[k] - before[k];
      before[k] = now[k];
      now[k] = next;
    }
  }
  for (size_t k = 0; k < vectors; ++k)
    for (size_t i = 0; i < lanes; ++i) sums[lanes * k + i] = sum[k][i];
}

// Sixteen registers of 16 bytes hold the state of 8 frequencies, those of 32 bytes that of 12 and more, and 32
// registers of 64 bytes that of 48. No form fuses products with sums (CMakeLists.txt), so that all give the
// same bits.
struct CosineSums {
  size_t together;
  void (*sum)(std::span<const double> values, double centre, size_t first, double* sums);
};
void sum_8(std::span<const double> values, double centre, size_t first, double* sums) {
  sum_cosines<Four, 2>(values, centre, first, sums);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void sum_16(std::span<const double> values, double centre, size_t first, double* sums) {
  sum_cosines<Four, 4>(values, centre, first, sums);
}
[[gnu::target("avx512f")]] void sum_48(std::span<const double> values, double centre, size_t first, double* sums) {
  sum_cosines<Eight, 6>(values, centre, first, sums);
}
CosineSums choose_sums(size_t count) {
  if (count > 16 && __builtin_cpu_supports("avx512f") != 0) return {48, &sum_48};
  return __builtin_cpu_supports("avx2") != 0 ? CosineSums{16, &sum_16} : CosineSums{8, &sum_8};
}
#else
CosineSums choose_sums(size_t) { return {8, &sum_8}; }
#endif

std::vector<double> squared_coefficients(std::span<const double> values, double centre, size_t count) {
  const double n = static_cast<double>(values.size());
  const CosineSums form = choose_sums(count);
  std::vector<double> sums((count + form.together - 1) / form.together * form.together);
  for (size_t first = 0; first < count; first += form.together) form.sum(values, centre, first, sums.data() + first);
  sums.resize(count);
  for (double& each : sums) each *= each * 2 / n;
  return sums;
}

// A first-order process' spectrum at the frequency of cosine j, as a share of its spectrum at 0, which is what the
// variance of the mean is made of.
double share_of_spectrum(double memory, size_t j, double n) {
  const double cosine = std::cos(std::numbers::pi * static_cast<double>(j) / n);
  return (1 - memory) * (1 - memory) / (1 + memory * memory - 2 * memory * cosine);
}

Bounded logarithm(const Bounded& x) {
  return {std::log(x.value), {std::log(x.interval.low), std::log(x.interval.high)}};
}

bool is_positive(const Bounded& x) { return x.interval.low > 0 && x.value > 0 && x.interval.high > 0; }

}  // namespace

std::optional<MeanEstimate> estimate_mean(std::span<const double> values) {
  if (values.size() < k_min_values_for_interval) return std::nullopt;
  const double centre = mean(values), n = static_cast<double>(values.size());
  const double memory = first_order_memory(values);
  const std::vector<double> weights = weigh_cosines(n, memory);
  const std::vector<double> squares = squared_coefficients(values, centre, weights.size());
  double sum = 0, expected = 0, total = 0, doubt = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    sum += weights[j] * squares[j];
    expected += weights[j] * share_of_spectrum(memory, j + 1, n);
    total += weights[j];
    doubt += weights[j] * weights[j];
  }
  return MeanEstimate{centre, sum / expected / n, total * total / doubt};
}

Interval student_interval(const MeanEstimate& estimate, double confidence) {
  if (estimate.variance <= 0) return {estimate.value, estimate.value};
  const double reach = student_t_quantile((1 + confidence) / 2, estimate.degrees_of_freedom);
  const double half_width = reach * std::sqrt(estimate.variance);
  return {estimate.value - half_width, estimate.value + half_width};
}

Interval positive_interval(const MeanEstimate& estimate, double confidence) {
  const Interval logs = student_interval(
      {0, estimate.variance / (estimate.value * estimate.value), estimate.degrees_of_freedom}, confidence);
  return {estimate.value * std::exp(logs.low), estimate.value * std::exp(logs.high)};
}

Interval difference_interval(const Bounded& a, const Bounded& b) {
  const double difference = a.value - b.value;
  return {difference - std::hypot(a.value - a.interval.low, b.interval.high - b.value),
          difference + std::hypot(a.interval.high - a.value, b.value - b.interval.low)};
}

std::optional<Interval> ratio_interval(const Bounded& a, const Bounded& b) {
  if (!is_positive(a) || !is_positive(b)) return std::nullopt;
  const Interval logs = difference_interval(logarithm(a), logarithm(b));
  return Interval{std::exp(logs.low), std::exp(logs.high)};
}

}  // namespace tprimat
