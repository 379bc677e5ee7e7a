#include <cmath>

#include "result/metrics.h"

namespace tprimat {
namespace {

// Times and memory must be above zero; other values count as unknown.
std::optional<double> if_positive(const std::optional<double>& figure) {
  return figure && *figure > 0 && std::isfinite(*figure) ? figure : std::nullopt;
}

std::optional<double> relative_error(const std::optional<double>& predicted, const std::optional<double>& measured) {
  if (!if_positive(predicted) || !measured || !std::isfinite(*predicted / *measured)) return std::nullopt;
  return *predicted / *measured - 1;
}

}  // namespace

std::optional<double> comparable_memory_gb(const RunResult& result) {
  const MemoryMetrics& memory = result.memory_metrics;
  if (result.framework == Framework::native) return if_positive(memory.peak_memory_allocated_gb);
  const std::optional<double> used = if_positive(memory.peak_device_used_gb);
  return used ? used : if_positive(memory.peak_memory_reserved_gb);
}

std::optional<double> comparable_step_seconds(const RunResult& result) {
  if (result.statistics) return if_positive(result.statistics->median);
  return result.performance_metrics ? if_positive(result.performance_metrics->avg_step_time_seconds) : std::nullopt;
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
