#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tprimat {

// All take finite values in any order. An empty series is a bug of the caller (CHECK), except where stated.

double mean(std::span<const double> values);
double median(std::span<const double> values);

// Type 7 of Hyndman and Fan (The American Statistician 50, 1996), the default of R and NumPy: linear between order
// statistics, position (n - 1)·p. `probability` in 0..1.
double quantile(std::span<const double> values, double probability);
// Several at once, for ascending probabilities.
std::vector<double> quantiles(std::span<const double> values, std::span<const double> probabilities);

// Sample standard deviation, divisor n - 1; 0 for one value.
double stddev(std::span<const double> values);

// Median of |x - median|, not scaled.
double median_absolute_deviation(std::span<const double> values);

// 1 / Φ⁻¹(3/4): times this, the MAD of normal data estimates their standard deviation (Rousseeuw and Croux, JASA 88,
// 1993).
inline constexpr double k_mad_to_sigma = 1.4826;

// Indices with |x - median| / (1.4826·MAD) > threshold, ascending. If half of the values are equal, the MAD is 0, so at
// least 0.1 % of the median is used.
std::vector<size_t> find_outliers(std::span<const double> values, double threshold = 10.0);

// Correlation of the series with itself `lag` steps later, -1..1; 0 for a constant series or a lag beyond its end.
double autocorrelation(std::span<const double> values, size_t lag);

// Correlation of neighbours, 0 to 0.97, as of a first-order process: the lag-1 estimate freed of its bias towards zero,
// -(1 + 3r) / n (Kendall, Biometrika 41, 1954). 0 for fewer than five values.
double first_order_memory(std::span<const double> values);

// Place of each value in ascending order, from 1; equal values share the mean of their places.
std::vector<double> ranks_of(std::span<const double> values);

// Spearman's rank correlation: Pearson's of the ranks (Am. J. Psychology 15, 1904). 0 where all values of a side are
// equal. As many values on both sides (CHECK).
double spearman(std::span<const double> left, std::span<const double> right);

}  // namespace tprimat
