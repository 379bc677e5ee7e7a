#include "compare/copies.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace tprimat {
namespace {

// Bit by bit: a NaN in both is the same.
void append_series(std::string& key, const std::vector<double>& values) {
  key += fmt::format("{}:", values.size());
  key.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

bool is_various(const std::vector<double>& times) {
  constexpr size_t k_enough = 5;
  return std::set<double>(times.begin(), times.end()).size() >= k_enough;
}

std::string averages_of(const RunResult& result) {
  if (!result.performance_metrics) return "";
  const auto show = [](const std::optional<double>& figure) { return figure ? fmt::format("{}", *figure) : "unknown"; };
  return fmt::format("{} {}", show(result.performance_metrics->avg_step_time_seconds),
                     show(result.performance_metrics->tokens_per_second));
}

}  // namespace

std::string measurement_key(const RunResult& result) {
  std::string key;
  append_series(key, result.step_times);
  append_series(key, result.loss_values);
  if (is_various(result.step_times)) return key;
  const std::string averages = averages_of(result);
  if (result.timestamp.empty() || (result.step_times.empty() && averages.empty())) return "";
  return key + result.timestamp + (result.step_times.empty() ? averages : "");
}

bool is_same_measurement(const RunResult& a, const RunResult& b) {
  const std::string key = measurement_key(a);
  return !key.empty() && key == measurement_key(b);
}

void set_copies_aside(Contender& contender) {
  std::vector<LoadedRun> kept;
  std::map<std::string, std::string> originals;  // measurement to path
  for (LoadedRun& run : contender.runs) {
    const std::string key = measurement_key(run.result);
    const auto [original, is_first] = originals.try_emplace(key, run.path);
    if (is_first || key.empty())
      kept.push_back(std::move(run));
    else
      contender.copies.push_back(fmt::format("{} of {}", run.path, original->second));
  }
  contender.runs = std::move(kept);
}

}  // namespace tprimat
