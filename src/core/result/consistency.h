#pragma once

#include <vector>

#include "result/run_result.h"

namespace tprimat {

// Whether the number of parameters that the run states may be that of a model with `known` ones: logs round, count
// parameters twice that stages of a pipeline share, and may count the part of one rank. True where none is stated.
bool may_be_count_of(const RunResult& run, double known);

// Compares the figures of a stored result with the values that follow from its own inputs: warm-up and statistics from
// its step times, rates from batch, sequence length and devices, FLOPs and parameters from the model's shape, MFU from
// the peak, the peak from the hardware catalogue, cost from the price, energy from the telemetry. A figure without
// inputs counts as off, too. Intervals, and formulas of another version, are not compared. One entry per figure that is
// off by more than 0.1 %. `stored` must come from a file of this schema, not yet derived again.
std::vector<Contradiction> find_contradictions(const RunResult& stored);

// The same of an older file, which states averages of its own (`stated`): whether these follow from its step times, its
// batch and its devices. A rate that contradicts the batch by more than 5 % is recorded as effective work and not
// repeated here.
std::vector<Contradiction> find_older_contradictions(const RunResult& result, const PerformanceMetrics& stated);

// The steps of one line of a log by two witnesses, s: the times that the log states, and its time stamps.
struct ClockedSteps {
  double stated = 0, by_clock = 0;
  bool are_all = true;  // false: more steps lie between the stamps than the line states the time of
};

// Of the entries of step_times from `first` (1 or more) on that have a time, no label, and time stamps at both ends. A
// clock that was set back gives a negative time.
std::vector<ClockedSteps> clocked_steps(const RunResult& run, size_t first);

}  // namespace tprimat
