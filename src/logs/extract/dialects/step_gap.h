#pragma once

#include <cstdint>
#include <unordered_map>

#include "extract/extracted_log.h"

namespace tprimat::logs {

// From the record before, of the same rank, to this one.
struct StepGap {
  int64_t steps = 0;  // 0: there is none before it in this attempt
  Figure seconds;     // between their time stamps
};

// Follows the records of each rank. A repeated record has the gap of the first one.
class GapMeter {
 public:
  StepGap measure(const ExtractedStep& record) { return measure(record, record.unix_time); }
  StepGap measure(const ExtractedStep& record, Figure clock);  // s, by another clock than that of the line
  void start_at(int32_t rank, int64_t step, Figure clock);     // the clock began here, without a record

 private:
  struct Last {
    int64_t step = -1;
    Figure clock;
    StepGap gap;
  };
  std::unordered_map<int32_t, Last> ranks_;
};

// A printed time, rounded to `half` a digit more or less. Nothing if it is not a number.
void set_printed_time(ExtractedStep& record, Figure seconds, double half = 0);

// Steps that a record is the mean of: the gap, or 1.
int32_t mean_of_gap(const StepGap& gap);

// Gives a record without a time the mean of the steps in the gap. `resolution`: seconds that the difference of two
// stamps may be off by; without it 1 s when both show whole seconds, else 1 ms. Nothing where no time passed or it ran
// backwards.
void set_time_from_gap(ExtractedStep& record, const StepGap& gap, double resolution);
void set_time_from_gap(ExtractedStep& record, const StepGap& gap);

// work / rate, where `rate` was rounded to `half` more or less.
void set_time_from_rate(ExtractedStep& record, double work, double rate, double half);

}  // namespace tprimat::logs
