#pragma once

#include "extract/stated_facts.h"
#include "result/run_result.h"

namespace tprimat::logs {

// A run that was to end before its last step is complete: MLPerf's at its target, Megatron's after --exit-interval
// steps or --exit-duration-in-mins. Its steps are then those that it was to do.
void settle_planned_end(RunResult& result, StatedFacts& stated);

}  // namespace tprimat::logs
