#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

namespace tprimat::results {

// Bytes that two results share exactly if they are one measurement; empty if the result cannot be identified. Step
// times too various to agree by chance (logs round theirs) suffice. If they are few or similar, losses and time stamp
// must agree, too; without step times, the averages.
std::string measurement_key(const RunResult& result);

// The properties that decide whether a series of step times is identified by its values.
SeriesTrace trace_steps(const std::vector<double>& step_times);

// Whether the shorter series lies in the longer one: as it is, rounded to fewer digits, in another unit, or with single
// steps changed. The steps that agree, within the coarser rounding, are at least half, and more than chance allows:
// with a share p of the steps expected to agree, n KL(m/n || p) is 30 nats more than the logarithm of the places tried.
// Else a witness of same_course.cpp.
bool is_copy(const RunResult& a, const SeriesTrace& trace_a, const RunResult& b, const SeriesTrace& trace_b);

// Files of two participants that hold one measurement, regardless of their other facts.
struct SameMeasurement {
  const LoadedRun *reference = nullptr, *subject = nullptr;
};
std::vector<SameMeasurement> find_same_measurements(const Contender& reference, const Contender& subject);

// Keeps each measurement of a participant once, the longest and least rounded; `copies` names the other files.
void set_copies_aside(Contender& contender);

// Witnesses that two results hold one measurement although their step times do not lie in one another.

// Two series of step times with their properties; the first is not the shorter one.
struct SeriesPair {
  const std::vector<double>&longer, &shorter;
  const SeriesTrace &of_longer, &of_shorter;
  double unit = 1;       // factor for the shorter one
  double tolerance = 0;  // s; from their rounding
};

// n KL(m/n || p), nats: how unlikely it is that m of n agree if a share p agrees by chance.
double surprise(double agreeing, double all, double p);

// The same values in another order, with values repeated or left out: nine in ten of the shorter one's lie in the
// longer one, by more than 30 nats beyond chance.
bool shares_values(const SeriesPair& pair);

// The same ups and downs with another scale, offset or slight noise: the changes from step to step correlate above
// 0.99, and the residual is below 0.05 % of a step, which two runs never reach. A series that resembles itself at some
// distance (every tenth step slower) shows a pattern that two runs may share, and proves nothing unless it agrees
// within 0.003 %.
bool shares_changes(const SeriesPair& pair);

// The same time stamps at the same steps, as logs of several ranks have them, or one log in means of several steps.
// Stamps in whole seconds need the same losses and related step times besides: jobs that start together may share them.
bool shares_clock(const RunResult& a, const RunResult& b);

}  // namespace tprimat::results
