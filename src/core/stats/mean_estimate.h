#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tprimat {

struct Interval {
  double low = 0, high = 0;
};

// A mean with the variance of this mean, and how many degrees of freedom that variance is worth.
struct MeanEstimate {
  double value = 0, variance = 0, degrees_of_freedom = 1;
};

// A run is a series of steps. Fewer than this many values show no usable spread, and there is no interval.
inline constexpr size_t k_min_values_for_interval = 5;

// The method that derives an interval from a series: estimate_mean() and positive_interval(). Any change of the
// intervals gets a new number.
inline constexpr std::string_view k_interval_method = "long_run_variance_t/1";

// Mean of one autocorrelated series. Its variance comes from the series' slow movements, its first B cosine
// coefficients (equal-weighted cosine estimator: Lazarus, Lewis, Stock and Watson, J. Business & Economic Statistics
// 36, 2018), each weighed as a first-order process of the series' own memory would have it (prewhitening: Andrews and
// Monahan, Econometrica 60, 1992), and is worth about B degrees of freedom. B falls with memory and with doubt about
// it, so that short series that remember get honestly wide intervals. docs/method.md derives it and shows its coverage.
// Nothing for fewer than k_min_values_for_interval values.
std::optional<MeanEstimate> estimate_mean(std::span<const double> values);

// Student's interval, symmetric about the mean.
Interval student_interval(const MeanEstimate& estimate, double confidence = 0.95);

// The same of the logarithm, for a mean that is positive as times are: by how much a factor it may be off.
Interval positive_interval(const MeanEstimate& estimate, double confidence = 0.95);

// A value with its interval.
struct Bounded {
  double value = 0;
  Interval interval;
};

// Interval of a - b for two independent estimates, from their own intervals alone: the square-and-add rule of Zou and
// Donner (Statistics in Medicine 27, 2008), which keeps intervals that are not symmetric.
Interval difference_interval(const Bounded& a, const Bounded& b);

// Interval of a / b by the same rule on logarithms. Nothing unless all figures are positive.
std::optional<Interval> ratio_interval(const Bounded& a, const Bounded& b);

}  // namespace tprimat
