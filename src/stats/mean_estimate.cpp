#include "stats/mean_estimate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "stats/autocorrelation.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

namespace tprimat {
namespace {

// As many cosines as have a period that the memory does not reach: 0.4 of the independent values that a first-order
// process leaves whose memory is two standard errors longer than the series shows, and no more than 0.41·n^(2/3), after
// the rule of Lazarus et al. (0.4) for series with little memory.
size_t cosine_count(double n, double memory) {
  const double doubt = 2 * std::sqrt((1 - memory * memory) / n);
  const double worst = std::min(memory + doubt, 0.99);
  const double independent = n * (1 - worst) / (1 + worst);
  const double most = std::max(1.0, std::floor(0.41 * std::pow(n, 2.0 / 3)));
  return static_cast<size_t>(std::clamp(std::floor(0.4 * independent), 1.0, most));
}

// Squares of the first cosine coefficients, sqrt(2/n)·Σ (x_t − mean)·cos(πj(t + ½)/n), j = 1 .. count. The cosines of
// successive t follow from each other: cos((t+1)w) = 2·cos(w)·cos(tw) − cos((t−1)w).
std::vector<double> squared_coefficients(std::span<const double> values, double centre, size_t count) {
  const double n = static_cast<double>(values.size());
  std::vector<double> sum(count, 0.0), twice(count), now(count), before(count);
  for (size_t j = 0; j < count; ++j) {
    const double frequency = std::numbers::pi * static_cast<double>(j + 1) / n;
    twice[j] = 2 * std::cos(frequency);
    now[j] = before[j] = std::cos(frequency / 2);  // at t = 0, and at t = -1 by symmetry
  }
  for (const double value : values) {
    const double deviation = value - centre;
    for (size_t j = 0; j < count; ++j) {
      sum[j] += deviation * now[j];
      const double next = twice[j] * now[j] - before[j];
      before[j] = now[j];
      now[j] = next;
    }
  }
  for (double& each : sum) each *= each * 2 / n;
  return sum;
}

// Mean over the frequencies used of a first-order process' spectrum, as a share of the spectrum at 0, which is what the
// variance of the mean is made of.
double share_of_spectrum(double memory, size_t count, double n) {
  double sum = 0;
  for (size_t j = 1; j <= count; ++j) {
    const double cosine = std::cos(std::numbers::pi * static_cast<double>(j) / n);
    sum += (1 - memory) * (1 - memory) / (1 + memory * memory - 2 * memory * cosine);
  }
  return sum / static_cast<double>(count);
}

}  // namespace

std::optional<MeanEstimate> estimate_mean(std::span<const double> values) {
  if (values.size() < k_min_values_for_interval) return std::nullopt;
  const double centre = mean(values), n = static_cast<double>(values.size());
  const double memory = first_order_memory(values);
  const size_t count = cosine_count(n, memory);
  const double long_run_variance = mean(squared_coefficients(values, centre, count));
  return MeanEstimate{centre, long_run_variance / share_of_spectrum(memory, count, n) / n, static_cast<double>(count)};
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

}  // namespace tprimat
