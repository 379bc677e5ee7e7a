#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "result/run_result.h"

namespace tprimat {

// Steps that took time but changed no weight: skipped after an overflow, a NaN or a spike.
struct SkippedUpdates {
  int64_t all = 0;
  int64_t nan = 0;    // of these, entries of step_times whose loss or gradient is NaN
  int64_t steps = 0;  // that the result records
  int64_t steps_after_warmup = 0;
  // Without those of fp16's initial search for the loss scale. Skips without a step number count for the warm-up first.
  int64_t after_warmup = 0;
};

// Four witnesses: the result's count, its events of skipped updates and of NaNs, and the loss scale, which falls after
// an overflow. A fall beside a skip that the log reports is that skip. The highest count holds.
SkippedUpdates count_skipped_updates(const RunResult& result);

// Why the optimizer cannot have updated a weight although no step was skipped: a learning rate of zero at every step.
std::optional<std::string> find_idle_optimizer(const RunResult& result);

}  // namespace tprimat
