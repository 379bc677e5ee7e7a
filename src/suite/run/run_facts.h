#pragma once

#include "result/run_result.h"
#include "run/follow.h"
#include "run/step_telemetry.h"
#include "telemetry/sensor_summary.h"

namespace tprimat::suite {

// What is known of a run before any figure is computed: what was asked, on what, and how it ended, with the raw series.
RunResult describe_run(const PlannedRun& run, const TrainingTrace& trace, const SuiteContext& around);

// Who else was on its GPUs and what befell its files goes into the warnings, and into the reason of a run that failed.
// To be called last, when the run has been judged.
void note_circumstances(RunResult& result, const TrainingTrace& trace);

// When each step ran, by the dates of its records.
StepWindows step_windows(const TrainingTrace& trace, const RunResult& result);

// From the start of the first steady step to the end of the last, or nothing when there is no steady step.
std::optional<TimeWindow> steady_window(const TrainingTrace& trace, int64_t steps_excluded);

}  // namespace tprimat::suite
