#pragma once

#include "extract/course.h"

namespace tprimat::logs {

// The memory of each rank by its kind, and the highest that the records report.
void fill_memory(RunResult& result, const ExtractedLog& log, const Course& course);

// The other reports of the log, with its own step numbers.
void fill_events(RunResult& result, const ExtractedLog& log);

// Adds to the result of a run that was followed by its log what a StepRecord has no field for, as `extract` finds it in
// that log: the framework's own rates, memory by rank, labels of steps, events, skipped updates. The first entry is
// step 1, or the one after the checkpoint that was loaded.
void add_logged_figures(RunResult& result, const ReadLog& read);

}  // namespace tprimat::logs
