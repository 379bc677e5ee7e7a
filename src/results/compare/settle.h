#pragma once

#include <optional>
#include <string>

#include "compare/comparison.h"
#include "compare/verdict.h"

namespace tprimat::results {

// What counts as an effect, and what to assume about runs; both relative.
struct Margins {
  double smallest_effect = 0.01, assumed_run_spread = k_assumed_run_spread;
};

// Fills ratio, verdict and statistics of a pair, and plans the runs that would settle an inconclusive one.
void judge_pair(Pair& pair, const RateEvidence& reference, const RateEvidence& subject, const Margins& margins);

// Holds faster and slower to a false discovery rate of 5 % over all pairs whose verdict is shown: what exceeds it
// becomes inconclusive. Then every pair gets its explanation.
void settle_verdicts(Comparison& comparison);

// Why, in words: "the interval 1.53 to 1.57 lies beyond 1 %".
std::string explain(const Pair& pair, double smallest_effect);

// What to do about an interval that is too wide: "; more runs would narrow it", or quiet the machine first. Empty for a
// pair without an interval.
std::string advise_runs(const Pair& pair);

}  // namespace tprimat::results
