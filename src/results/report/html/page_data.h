#pragma once

#include "compare/comparison.h"
#include "text/json.h"

namespace tprimat::results {

// What the page's scripts draw from: comparison_to_json with the same numbers, and to each participant its series,
// peaks, sensors and derivations, to each model its settings side by side. Findings stand once, in `findings`, and are
// referred to by their place there.
Json page_to_json(const Comparison& comparison);

// A series as a chart draws it.
struct StepPoints {
  std::vector<int64_t> steps;
  std::vector<double> values;  // five significant digits; NaN: none at that step
  size_t recorded = 0;         // entries of the series; more than values.size() where it was thinned
};

// Beyond this many entries a series is thinned: of each of half as many buckets the lowest and the highest remain, so
// that no spike is lost.
inline constexpr size_t k_max_drawn_points = 2000;

StepPoints thin_series(const RunResult& result, const std::vector<double>& series);

}  // namespace tprimat::results
