#pragma once

#include <string>

#include "run/follow.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// Has `count` further steps trained under the framework's profiler after the measured ones; 0: none. Where its program
// cannot do that, the run is measured as ever and `unprofiled` says why.
void plan_profiled_steps(PlannedRun& run, int64_t count);

// Removes what an earlier run of the same name left: its result is about to be replaced.
void remove_profiled_steps(const PlannedRun& run);

// Moves the traces of all ranks beside the result (`<its stem>_profile/rank_0.json.gz`), and describes them in it.
// Traces that are missing, and steps that failed after all measured ones, become warnings.
void bring_profiled_steps(RunResult& result, const PlannedRun& run);

// A run that failed after its last measured step, while further ones were profiled, is a complete measurement with a
// warning, unless a checkpoint was to follow.
void forgive_profiled_steps(RunResult& result, const PlannedRun& run, const TrainingTrace& trace);

// Whether a complete earlier result has what is asked for of the run's profiled steps, with all its files.
bool has_profiled_steps(const RunResult& earlier, const PlannedRun& run);

}  // namespace tprimat::suite
