#pragma once

#include <optional>
#include <string>

#include "compare/comparison.h"

namespace tprimat {

// Ratio of tokens/s per device, subject / reference, with the hierarchical bootstrap interval over runs and steps.
// Without an interval where a side has only averages; nothing where a side has no rate.
// With more than a hundred runs on a side: as estimate_ratio_by_figures.
std::optional<Estimate> estimate_ratio(const Contender& reference, const Contender& subject);

// The same from two figures and their own intervals (stats/interval_arithmetic.h): at once, where pairs are many.
std::optional<Estimate> estimate_ratio_by_figures(const Estimate& reference, const Estimate& subject);

// faster / slower: the whole interval lies beyond the smallest effect; same: the whole interval lies within it;
// otherwise inconclusive. (A region of practical equivalence: "not significant" alone is never "same".)
Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect);

// Why, in words: "the interval 1.53 to 1.57 lies beyond 1 %".
std::string explain(const std::optional<Estimate>& ratio, double smallest_effect);

}  // namespace tprimat
