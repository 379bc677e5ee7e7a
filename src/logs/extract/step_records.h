#pragma once

#include <vector>

#include "extract/read_log.h"
#include "result/step_record.h"

namespace tprimat::logs {

// The steps of a log as a trainer would have recorded them, counted from 1, in the order of the log: a step that was
// repeated after a restart comes again. A time that the log does not tell is NaN.
std::vector<StepRecord> make_step_records(const ReadLog& read);

}  // namespace tprimat::logs
