#include "compare/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace tprimat {
namespace {

// Bit by bit: a NaN in both is the same.
bool is_equal_series(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

bool is_various(const std::vector<double>& times) {
  constexpr size_t k_enough = 5;
  return std::set<double>(times.begin(), times.end()).size() >= k_enough;
}

bool has_equal_averages(const RunResult& a, const RunResult& b) {
  if (!a.performance_metrics || !b.performance_metrics) return false;
  return a.performance_metrics->avg_step_time_seconds == b.performance_metrics->avg_step_time_seconds &&
         a.performance_metrics->tokens_per_second == b.performance_metrics->tokens_per_second;
}

}  // namespace

bool is_same_measurement(const RunResult& a, const RunResult& b) {
  if (!is_equal_series(a.step_times, b.step_times) || !is_equal_series(a.loss_values, b.loss_values)) return false;
  if (a.timestamp == b.timestamp && !a.timestamp.empty()) return !a.step_times.empty() || has_equal_averages(a, b);
  return is_various(a.step_times);
}

void set_copies_aside(Contender& contender) {
  std::vector<LoadedRun> kept;
  for (LoadedRun& run : contender.runs) {
    const auto original = std::find_if(
        kept.begin(), kept.end(), [&](const LoadedRun& each) { return is_same_measurement(each.result, run.result); });
    if (original == kept.end())
      kept.push_back(std::move(run));
    else
      contender.copies.push_back(fmt::format("{} of {}", run.path, original->path));
  }
  contender.runs = std::move(kept);
}

}  // namespace tprimat
