#pragma once

#include "result/run_result.h"
#include "run/follow.h"
#include "run/step_telemetry.h"
#include "telemetry/sensor_summary.h"

namespace tprimat::suite {

// The facts of a run before any figure is computed: request, device, end and raw series.
RunResult describe_run(const PlannedRun& run, const TrainingTrace& trace, const SuiteContext& around);

// Adds other processes on its GPUs and damage to its files to the warnings, and to the reason of a failed run. Call it
// last, after the run was judged.
void note_circumstances(RunResult& result, const TrainingTrace& trace);

// When each step ran, by the dates of its records.
StepWindows step_windows(const TrainingTrace& trace, const RunResult& result);

// From the start of the first step after number `last_excluded` to the end of the last, or nothing when there is none.
std::optional<TimeWindow> steady_window(const TrainingTrace& trace, int64_t last_excluded);

}  // namespace tprimat::suite
