#pragma once

#include <optional>
#include <span>
#include <vector>

#include "extract/read_log.h"
#include "extract/stated_facts.h"
#include "result/run_result.h"
#include "result/step_record.h"

namespace tprimat::logs {

using Course = std::vector<const ExtractedStep*>;

// The effective steps: a restart replaces the steps that it repeats.
Course final_course(const ExtractedLog& log);

// The tokens per step that the log states; nothing unless all steps agree.
std::optional<int64_t> stated_tokens(const Course& course);

// Updates of the course that the optimizer skipped: the sum of the log's own counter, else the number of events.
// Nothing without either: a log that mentions no skipped update may be unable to report one.
std::optional<int64_t> count_skipped_updates(const Course& course, const ExtractedLog& log);

// Each of these figures of each step, NaN where it is absent; empty where no step has it.
using FigureMember = Figure ExtractedStep::*;
std::vector<std::vector<double>> all_series(const Course& course, std::span<const FigureMember> members);

// What the framework itself computed of each step, by its own formulas.
ReportedFigures reported_figures(const Course& course);

// The figures of each step, and which steps they are.
void fill_series(RunResult& result, const Course& course);
void number_steps(RunResult& result, const Course& course, int64_t counts_from);

// The effective batch: the one that most records of the course print, even if the arguments differ. If records,
// arguments and the counter of samples contradict each other, and no ramp-up explains it, the contradiction is
// recorded, so that no verdict relies on the batch.
void settle_batch(RunResult& result, StatedFacts& stated, const Course& course);

// The steps of a log as a trainer would have recorded them, counted from 1, in the order of the log: a step that is
// repeated after a restart occurs again. A time that the log does not state is NaN.
std::vector<StepRecord> make_step_records(const ReadLog& read);

}  // namespace tprimat::logs
