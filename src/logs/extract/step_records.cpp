#include "extract/step_records.h"

#include <limits>

namespace tprimat::logs {
namespace {

constexpr int64_t k_last_record = int64_t{1} << 50;  // beyond any training: a broken log must not overflow

StepRecord to_record(const ExtractedStep& step, int64_t first) {
  StepRecord record;
  record.step = step.step - first + 1;
  record.time_seconds = step.time_seconds.value_or(std::numeric_limits<double>::quiet_NaN());
  record.loss = step.loss.to_optional();
  record.learning_rate = step.learning_rate.to_optional();
  record.grad_norm = step.grad_norm.to_optional();
  record.memory_allocated_gb = step.memory_allocated_gb.to_optional();
  record.memory_reserved_gb = step.memory_reserved_gb.to_optional();
  record.loss_scale = step.loss_scale.to_optional();
  if (step.tokens.finite()) record.tokens = static_cast<int64_t>(*step.tokens);
  if (step.skipped) record.skipped = true;
  return record;
}

}  // namespace

std::vector<StepRecord> make_step_records(const ReadLog& read) {
  const int64_t first = read.dialect != nullptr ? read.dialect->counts_from : 1;
  std::vector<StepRecord> records;
  for (const ExtractedStep& step : read.log.steps)
    if (step.step <= k_last_record) records.push_back(to_record(step, first));
  return records;
}

}  // namespace tprimat::logs
