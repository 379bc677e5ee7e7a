#pragma once

#include <optional>

#include "result/run_result.h"

namespace tprimat {

// What a predicted memory is held against: what our own trainer allocated; of the others what the device used, else
// what their allocator held. Nothing where none is known.
std::optional<double> comparable_memory_gb(const RunResult& result);

// The median of the steady steps, else their mean.
std::optional<double> comparable_step_seconds(const RunResult& result);

// predicted / measured - 1; nothing unless both are known.
std::optional<double> memory_prediction_error(const RunResult& result);
std::optional<double> step_time_prediction_error(const RunResult& result);

}  // namespace tprimat
