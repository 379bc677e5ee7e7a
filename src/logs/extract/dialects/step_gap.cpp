#include "extract/dialects/step_gap.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tprimat::logs {

StepGap GapMeter::measure(const ExtractedStep& record, Figure clock) {
  Last& last = ranks_[record.rank];
  if (record.step == last.step) return last.gap;
  StepGap gap;
  if (last.step >= 0 && record.step > last.step) {
    gap.steps = record.step - last.step;
    if (last.clock && clock) gap.seconds = *clock - *last.clock;
  }
  last = {record.step, clock, gap};
  return gap;
}

void GapMeter::start_at(int32_t rank, int64_t step, Figure clock) { ranks_[rank] = {step, clock, {}}; }

void set_printed_time(ExtractedStep& record, Figure seconds, double half) {
  if (!seconds.finite() || *seconds <= 0) return;
  record.time_source = TimeSource::printed;
  record.time_seconds = seconds;
  if (half > 0) record.time_low = *seconds - half, record.time_high = *seconds + half;
}

int32_t mean_of_gap(const StepGap& gap) {
  return static_cast<int32_t>(std::clamp<int64_t>(gap.steps, 1, std::numeric_limits<int32_t>::max()));
}

void set_time_from_gap(ExtractedStep& record, const StepGap& gap, double resolution) {
  if (record.time_source != TimeSource::none || gap.steps < 1 || !gap.seconds.finite() || *gap.seconds <= 0) return;
  const auto steps = static_cast<double>(gap.steps);
  record.time_source = TimeSource::from_timestamps;
  record.mean_of = mean_of_gap(gap);
  record.time_seconds = *gap.seconds / steps;
  record.time_low = std::max(0.0, *gap.seconds - resolution) / steps;
  record.time_high = (*gap.seconds + resolution) / steps;
}

void set_time_from_gap(ExtractedStep& record, const StepGap& gap) {
  const auto whole = [](Figure seconds) { return seconds && std::floor(*seconds) == *seconds; };
  set_time_from_gap(record, gap, whole(record.unix_time) && whole(gap.seconds) ? 1.0 : 1e-3);
}

void set_time_from_rate(ExtractedStep& record, double work, double rate, double half) {
  if (record.time_source != TimeSource::none || !(work > 0) || !(rate > 0) || !std::isfinite(work / rate)) return;
  record.time_source = TimeSource::from_rate;
  record.time_seconds = work / rate;
  if (half > 0) record.time_low = work / (rate + half);
  if (half > 0 && rate > half) record.time_high = work / (rate - half);
}

}  // namespace tprimat::logs
