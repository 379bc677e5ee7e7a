#pragma once

#include <optional>
#include <vector>

#include "compare/comparison.h"
#include "stats/log_ratio.h"

namespace tprimat::results {

// One run says nothing about the spread between runs. Where it can be neither measured nor borrowed from the other
// side, this much is assumed (relative standard deviation), and said so.
inline constexpr double k_assumed_run_spread = 0.02;

// What a participant's runs say about its rate.
struct RateEvidence {
  std::optional<double> rate;            // tokens/s per device
  std::vector<MeanEstimate> step_times;  // s, one per run; empty where a run has averages only, or too few steps
  double work_per_step = 0;              // tokens per device; known where step_times are
};
RateEvidence gather_evidence(const Contender& contender);

// Subject / reference, as a logarithm with its error; nothing where a side has no step times.
std::optional<LogRatio> measure_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                      double assumed_run_spread = k_assumed_run_spread);

// Ratio of tokens/s per device, subject / reference, with its 95 % interval. Without an interval where a side has only
// averages; nothing where a side has no rate.
std::optional<Estimate> estimate_ratio(const Contender& reference, const Contender& subject);
std::optional<Estimate> estimate_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                       const std::optional<LogRatio>& measured);
Estimate to_estimate(const LogRatio& ratio);

// The same from two figures and their own intervals (stats/mean_estimate.h): at once, where pairs are many.
std::optional<Estimate> estimate_ratio_by_figures(const Estimate& reference, const Estimate& subject);

// faster / slower: the whole interval lies beyond the smallest effect; same: the whole interval lies within it;
// otherwise inconclusive. (A region of practical equivalence: "not significant" alone is never "same".)
Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect);

}  // namespace tprimat::results
