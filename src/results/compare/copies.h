#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/comparison.h"

namespace tprimat::results {

// Bytes that two results share exactly when they are one measurement; empty for what can be a copy of nothing. Step
// times too various to agree by chance (logs round theirs) say it alone. Where they are few or alike, losses and time
// stamp must agree too, and of runs without step times their averages.
std::string measurement_key(const RunResult& result);

// The properties that decide whether its values identify a series of step times.
SeriesTrace trace_steps(const std::vector<double>& step_times);

// Whether the shorter series lies in the longer one: as it is, rounded to fewer digits, in another unit, or with single
// steps changed. The steps that agree, within the coarser rounding, are at least half, and more than chance allows:
// with a share p of the steps expected to agree, n KL(m/n || p) is 30 nats more than the logarithm of the places tried.
// Else a witness of same_course.h.
bool is_copy(const RunResult& a, const SeriesTrace& trace_a, const RunResult& b, const SeriesTrace& trace_b);

// Files of two participants that hold one measurement, whatever else they state.
struct SameMeasurement {
  const LoadedRun *reference = nullptr, *subject = nullptr;
};
std::vector<SameMeasurement> find_same_measurements(const Contender& reference, const Contender& subject);

// Keeps each measurement of a participant once, the longest and least rounded; `copies` names the other files.
void set_copies_aside(Contender& contender);

}  // namespace tprimat::results
