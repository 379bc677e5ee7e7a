#pragma once

#include <string>

#include "result/run_result.h"

namespace tprimat::results {

// What the run recorded about its outlying steps: "3 of 57 steady steps, the first is step 20: 2 with a checkpoint, 1
// unattributed". An event belongs to the step that it names and to the one after, whose time it may have fallen into.
// Of a slow step the sensors' readings within it count, where they differ from those of ordinary steps: a clock that
// was held down in half of them, a clock 5 % lower on a device as busy as ever (where no reasons are read), other
// processes on a machine with no thread to spare. What most steps have, or what was read between steps, explains none.
// What is known of the whole run only is said beside it and attributed to no step.
std::string describe_outliers(const RunResult& run);

}  // namespace tprimat::results
