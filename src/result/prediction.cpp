#include "result/prediction.h"

#include <cmath>

namespace tprimat {
namespace {

std::optional<double> relative_error(const std::optional<double>& predicted, const std::optional<double>& measured) {
  if (!predicted || !measured || !(*measured > 0) || !std::isfinite(*predicted / *measured)) return std::nullopt;
  return *predicted / *measured - 1;
}

}  // namespace

std::optional<double> comparable_memory_gb(const RunResult& result) {
  const MemoryMetrics& memory = result.memory_metrics;
  if (result.framework == Framework::native) return memory.peak_memory_allocated_gb;
  return memory.peak_device_used_gb ? memory.peak_device_used_gb : memory.peak_memory_reserved_gb;
}

std::optional<double> comparable_step_seconds(const RunResult& result) {
  if (result.statistics) return result.statistics->median;
  return result.performance_metrics ? result.performance_metrics->avg_step_time_seconds : std::nullopt;
}

std::optional<double> memory_prediction_error(const RunResult& result) {
  if (!result.prediction) return std::nullopt;
  return relative_error(result.prediction->memory_gb, comparable_memory_gb(result));
}

std::optional<double> step_time_prediction_error(const RunResult& result) {
  if (!result.prediction) return std::nullopt;
  return relative_error(result.prediction->step_time_seconds, comparable_step_seconds(result));
}

}  // namespace tprimat
