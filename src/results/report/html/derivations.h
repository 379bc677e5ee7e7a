#pragma once

#include <optional>
#include <string>

#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat::results {

// The metric's formula with the participant's numbers in it: "131 072 tokens x 480 steps / 1 206.2 s". Of repetitions
// the first run's, and that the figure is the mean over the runs. Nothing where the participant has no such figure.
std::optional<std::string> derive_figure(const Contender& contender, const Metric& metric);

}  // namespace tprimat::results
