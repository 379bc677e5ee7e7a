#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "archive/verification.h"
#include "result/run_result.h"
#include "result/step_record.h"

namespace tprimat::results {

using RecordsByStep = std::map<int64_t, StepRecord>;

// Of a step that was recorded more than once the last record counts.
RecordsByStep index_records(const std::vector<StepRecord>& records);
RecordsByStep parse_records(const std::string& lines);

// The series of a result as records: what one made from the same log says.
RecordsByStep records_of(const RunResult& result);

struct SeriesPlace {
  std::string file, witness;  // the result, and the file of the records
};

// Compares time, loss, learning rate, gradient norm and memory of every step of a result with its record. A step
// without a record does not hold, nor does a record that the result leaves out.
void check_series(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found);

// Compares the other fields of step records that a trainer wrote: time stamps, loss scales, tokens, skipped updates.
void check_work(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found);

}  // namespace tprimat::results
