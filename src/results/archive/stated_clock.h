#pragma once

#include "archive/stated_series.h"

namespace tprimat::results {

// The time stamps of step records are a second clock: the distance between the ends of two steps is the time of the
// later one, and no run starts after its first step. Medians over the steps are compared, so evaluations, checkpoints
// and a clock that was set do not count.
void check_clock(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found);

// Compares the time stamps of a log with the step times that it prints. Time stamps are rounded to seconds, and
// frameworks do not time all of a step, so differences below a quarter are accepted.
void check_log_clock(const SeriesPlace& place, const RunResult& stated, Verification& found);

}  // namespace tprimat::results
