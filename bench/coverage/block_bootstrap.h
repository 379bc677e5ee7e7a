#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/mean_estimate.h"

// The method that src/core/stats/mean_estimate.h is measured against: what tprimat used before.
namespace tprimat {

// How an interval is resampled. The same seed gives the same interval on every machine.
struct BootstrapOptions {
  int replicates = 4000;
  double confidence = 0.95;
  uint64_t seed = 20250101;
};

// Interval of the mean of one autocorrelated series: circular moving-block bootstrap (Künsch 1989; Politis and Romano
// 1992), block length by Politis and White, expanded percentile interval (Hesterberg, The American Statistician
// 69, 2015) so that few blocks give an honestly wide interval, and never narrower than a first-order process with the
// series' own lag-1 correlation would make it. Nothing for fewer than k_min_values_for_interval values.
std::optional<Interval> bootstrap_mean(std::span<const double> values, const BootstrapOptions& options = {});

// Several runs of the same thing: the outer level resamples runs, the inner one blocks of steps within each (Kalibera
// and Jones, ISMM 2013). With one run there is only the inner level, and the interval knows nothing of the spread
// between runs.
using Runs = std::vector<std::vector<double>>;

// Interval of mean(numerator) / mean(denominator), each the mean over runs of the run's mean, resampled independently.
// Multiplied by `scale`. Nothing when a side has a run with too few values, or no run.
std::optional<Interval> bootstrap_ratio(const Runs& numerator, const Runs& denominator, double scale,
                                        const BootstrapOptions& options = {});

// Interval of the mean over runs. Nothing as above.
std::optional<Interval> bootstrap_mean_of_runs(const Runs& runs, const BootstrapOptions& options = {});

}  // namespace tprimat
