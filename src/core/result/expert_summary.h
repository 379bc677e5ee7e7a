#pragma once

#include <optional>
#include <vector>

#include "result/run_result.h"

namespace tprimat {

// Fills the means of result.experts from its series: over the entries of step_times that are steady and have a finite
// figure. A mean without a series stays as it is; one whose series has no such entry is removed. The warm-up and the
// step times must be known already.
void summarise_experts(RunResult& result);

// The mean of one such series over those entries; nothing where there are none.
std::optional<double> steady_mean(const RunResult& result, const std::vector<double>& series);

}  // namespace tprimat
