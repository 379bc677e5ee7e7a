#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "archive/verification.h"
#include "result/run_result.h"
#include "result/step_record.h"

namespace tprimat {

using RecordsByStep = std::map<int64_t, StepRecord>;

// Of a step that was recorded more than once the last record counts.
RecordsByStep index_records(const std::vector<StepRecord>& records);
RecordsByStep parse_records(const std::string& lines);

// The series of a result as records: what one made from the same log says.
RecordsByStep records_of(const RunResult& result);

// Holds time, loss, learning rate, gradient norm and memory of every step that a result states against its record. What
// is stated without a record does not hold, and neither does what the result leaves out.
void check_series(const std::string& file, const RunResult& stated, const RecordsByStep& records, Verification& found);

}  // namespace tprimat
