#pragma once

#include <string>

#include "result/run_result.h"

namespace tprimat {

// What the run recorded about its outlying steps: "3 of 57 steady steps, the first is step 20: 2 with a checkpoint, 1
// unattributed". An event belongs to the step that it names and to the one after, whose time it may have fallen into.
// What is known of the whole run only, throttling and other processes, is said beside it and attributed to no step.
std::string describe_outliers(const RunResult& run);

}  // namespace tprimat
