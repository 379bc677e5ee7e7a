#pragma once

#include <cstdint>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// A series as a chart draws it.
struct StepPoints {
  std::vector<int64_t> steps;
  std::vector<double> values;  // NaN: none at that step
  size_t recorded = 0;         // entries of the series; more than values.size() where it was thinned
};

// Beyond this many entries a series is thinned: of each of half as many buckets the lowest and the highest remain, so
// that no spike is lost.
inline constexpr size_t k_max_drawn_points = 2000;

// The values have five significant digits, more than a screen can show.
StepPoints thin_series(const RunResult& result, const std::vector<double>& series);

// To `digits` significant digits; NaN and infinities stay.
double round_significant(double value, int digits);

}  // namespace tprimat::results
