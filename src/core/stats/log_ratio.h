#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stats/mean_estimate.h"

namespace tprimat {

// Where the spread between runs comes from: measured where both sides have several runs; a side with one run borrows it
// from a side with three or more; else a spread is assumed for each single run and reported as such.
enum class RunSpread { measured, borrowed, assumed };

// One side of a ratio, in relative terms: the variance of one run's mean and of the mean over its runs.
struct RatioSide {
  size_t runs = 0;
  double variance_of_run = 0, variance = 0, degrees_of_freedom = 1;
};

// Satterthwaite (Biometrics Bulletin 2, 1946): degrees of freedom of a sum of two independent variances, at least 1.
double joint_degrees(double a, double degrees_of_a, double b, double degrees_of_b);

// ln(mean of the numerator's runs / mean of the denominator's). The log makes A/B and B/A exact mirror images.
struct LogRatio {
  double value = 0, variance = 0, degrees_of_freedom = 1;
  RatioSide numerator, denominator;
  RunSpread spread = RunSpread::measured;
};

// Each run stands for one value, its mean; `assumed_spread` is the relative standard deviation between runs to assume
// where it can neither be measured nor borrowed. Means are positive; neither side is empty. docs/method.md derives it.
LogRatio compare_means(const std::vector<MeanEstimate>& numerator, const std::vector<MeanEstimate>& denominator,
                       double assumed_spread);

// Of the ratio itself (not of its logarithm).
Interval ratio_interval(const LogRatio& ratio, double confidence = 0.95);

// Two-sided, of the hypothesis that the ratio lies within 1/(1+margin) .. 1+margin: below 0.05 exactly where the 95 %
// interval lies beyond that margin.
double p_value_beyond(const LogRatio& ratio, double margin);

// How many more runs per side would settle whether the ratio lies beyond or within the margin, if the estimate is
// right.
struct RunPlan {
  double margin = 0.01;        // as a share
  double significance = 0.05;  // of "beyond"; "within" is always judged at 0.05
  double power = 0.8;          // chance that the verdict is then given
  size_t most = 50;            // nothing where more would be needed: the ratio is about the margin
};
std::optional<size_t> more_runs_to_settle(const LogRatio& ratio, const RunPlan& plan);

// Adjusted p-values in the same order: those at most q are the discoveries of which on average no more than the share q
// is false, however the tests depend on each other (Benjamini and Yekutieli, Annals of Statistics 29, 2001):
// p(i)·m·(1 + 1/2 + ... + 1/m)/i, made monotone from the largest down, at most 1.
std::vector<double> adjust_p_values(std::span<const double> p_values);

}  // namespace tprimat
