#pragma once

#include <optional>
#include <vector>

#include "extract/read_log.h"
#include "extract/stated_facts.h"
#include "result/run_result.h"
#include "result/step_record.h"

namespace tprimat::logs {

using Course = std::vector<const ExtractedStep*>;

// The steps that count in the end: a restart replaces the steps it repeats.
Course final_course(const ExtractedLog& log);

// The tokens per step that the log states; nothing unless all steps agree.
std::optional<int64_t> stated_tokens(const Course& course);

// Updates of the course that the optimizer skipped: the sum of the log's own counter, else the number of events.
// Nothing without either: a log that mentions no skipped update may be unable to report one.
std::optional<int64_t> count_skipped_updates(const Course& course, const ExtractedLog& log);

// A figure of each step, NaN where it is absent; empty where no step has it.
std::vector<double> series(const Course& course, Figure ExtractedStep::*member);

// The figures of each step, and which steps they are.
void fill_series(RunResult& result, const Course& course);
void number_steps(RunResult& result, const Course& course, int64_t counts_from);

// The batch that ran: the one that most of the course's records print, whatever the arguments say. Where the records,
// the arguments and the counter of samples deny each other, and no ramp-up explains it, the contradiction goes on
// record, so that no verdict rests on the batch.
void settle_batch(RunResult& result, StatedFacts& stated, const Course& course);

// The steps of a log as a trainer would have recorded them, counted from 1, in the order of the log: a step that was
// repeated after a restart comes again. A time that the log does not tell is NaN.
std::vector<StepRecord> make_step_records(const ReadLog& read);

}  // namespace tprimat::logs
