#pragma once

#include <vector>

#include "result/run_result.h"

namespace tprimat {

// The steps of one line of a log by two witnesses, s: the times that the log states, and its time stamps.
struct ClockedSteps {
  double stated = 0, by_clock = 0;
  bool are_all = true;  // false: more steps lie between the stamps than the line states the time of
};

// Of the entries of step_times from `first` (1 or more) on that have a time, no label, and time stamps at both ends. A
// clock that was set back gives a negative time.
std::vector<ClockedSteps> clocked_steps(const RunResult& run, size_t first);

}  // namespace tprimat
