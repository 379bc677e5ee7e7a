#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "archive/stated_result.h"
#include "result/step_record.h"

namespace tprimat::results {

using RecordsByStep = std::map<int64_t, StepRecord>;

// Of a step that was recorded more than once the last record counts.
RecordsByStep index_records(const std::vector<StepRecord>& records);
RecordsByStep parse_records(const std::string& lines);

// The series of a result as records: what one made from the same log says.
RecordsByStep records_of(const RunResult& result);

// Compares time, loss, learning rate, gradient norm and memory of every step of a result with its record. A step
// without a record does not hold, nor does a record that the result leaves out.
void check_series(const ResultCheck& check, const RecordsByStep& records);

// Compares the other fields of step records that a trainer wrote: time stamps, loss scales, tokens, skipped updates.
void check_work(const ResultCheck& check, const RecordsByStep& records);

// The time stamps of step records are a second clock: the distance between the ends of two steps is the time of the
// later one, and no run starts after its first step. Medians over the steps are compared, so evaluations, checkpoints
// and a clock that was set do not count.
void check_clock(const ResultCheck& check, const RecordsByStep& records);

// Compares the time stamps of a log with the step times that it prints. Time stamps are rounded to seconds, and
// frameworks do not time all of a step, so differences below a quarter are accepted.
void check_log_clock(const ResultCheck& check);

}  // namespace tprimat::results
