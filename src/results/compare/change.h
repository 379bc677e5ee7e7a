#pragma once

#include <optional>
#include <string>

#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat::results {

// How a metric of the subject differs from the reference's.
struct Change {
  std::optional<Estimate> before, after;
  std::optional<Estimate> difference;  // after - before, in the metric's unit
  std::optional<Estimate> share;       // after / before - 1; absent where `before` is not positive
  bool follows_from_steps = false;     // the figure is made of the mean step time, so it should have an interval
};

// What follows from the mean step time takes the interval of the pair's ratio (tokens/s per device), as a share and as
// a difference. Any other metric: from the two figures' own intervals (stats/mean_estimate.h), and without an
// interval where a side has none.
Change measure_change(const ModelGroup& group, const Pair& pair, const Metric& metric);

}  // namespace tprimat::results
