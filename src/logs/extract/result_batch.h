#pragma once

#include "extract/course.h"
#include "extract/stated_facts.h"
#include "result/run_result.h"

namespace tprimat::logs {

// The batch that ran: the one that most of the course's records print, whatever the arguments say. Where the records,
// the arguments and the counter of samples deny each other, and no ramp-up explains it, the contradiction goes on
// record, so that no verdict rests on the batch.
void settle_batch(RunResult& result, StatedFacts& stated, const Course& course);

// Whether the step trained on another batch than the run's, or its time is a mean over such steps. `before` may be
// null.
bool has_other_batch(const ExtractedStep& step, const ExtractedStep* before, std::optional<int64_t> batch);

}  // namespace tprimat::logs
