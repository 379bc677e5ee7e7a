#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "stats/log_ratio.h"

namespace tprimat::results {

// One run says nothing about the spread between runs. If it can be neither measured nor borrowed from the other side,
// this much is assumed (relative standard deviation) and reported as such.
inline constexpr double k_assumed_run_spread = 0.02;

// The rate of a participant's runs.
struct RateEvidence {
  std::optional<double> rate;            // tokens/s per device
  std::vector<MeanEstimate> step_times;  // s, one per run; empty if a run has averages only, or too few steps
  double work_per_step = 0;              // tokens per device; known where step_times are
};
RateEvidence gather_evidence(const Contender& contender);

// Subject / reference, as a logarithm with its error; nothing where a side has no step times.
std::optional<LogRatio> measure_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                      double assumed_run_spread = k_assumed_run_spread);
Estimate to_estimate(const LogRatio& ratio);

// Subject / reference of two figures, from their own intervals (stats/mean_estimate.h). Nothing unless the reference is
// positive and the subject not negative: a change of more than -100 % does not exist.
std::optional<Estimate> estimate_ratio_by_figures(const Estimate& reference, const Estimate& subject);

// faster / slower: the whole interval lies beyond the smallest effect; same: the whole interval lies within it;
// otherwise inconclusive. (A region of practical equivalence: "not significant" alone is never "same".)
Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect);

// The smallest effect, and the assumed spread between runs; both relative.
struct Margins {
  double smallest_effect = 0.01, assumed_run_spread = k_assumed_run_spread;
};

// Fills ratio, verdict and statistics of a pair, and plans the runs that would settle an inconclusive one.
void judge_pair(Pair& pair, const RateEvidence& reference, const RateEvidence& subject, const Margins& margins);

// Holds faster and slower to a false discovery rate of 5 % over all pairs whose verdict is shown: verdicts beyond it
// become inconclusive. Then every pair gets its explanation.
void settle_verdicts(Comparison& comparison);

// The remedy for an interval that is too wide: "; more runs would narrow it", or quiet the machine first. Empty for a
// pair without an interval.
std::string advise_runs(const Pair& pair);

// Confirms the verdict in clock cycles (after the decision tree of nvbench-compare-robust): each run's time per step is
// multiplied by the mean clock of its devices, and the ratio judged again. Fills the pair's cycle ratio and adds the
// finding "clock", which says whether the gap survives. Nothing happens unless every run of both sides recorded a
// clock.
void confirm_in_cycles(Pair& pair, const Contender& reference, const Contender& subject, const Margins& margins);

}  // namespace tprimat::results
