#include "compare/copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace tprimat {
namespace {

// Bit by bit: a NaN in both is the same.
std::string_view bytes_of(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

void append_series(std::string& key, const std::vector<double>& values) {
  key += fmt::format("{}:", values.size());
  key += bytes_of(values);
}

bool is_various(const std::vector<double>& times) {
  constexpr size_t k_enough = 5;
  std::vector<double> seen;
  for (const double seconds : times) {
    if (!std::isnan(seconds) && std::find(seen.begin(), seen.end(), seconds) == seen.end()) seen.push_back(seconds);
    if (seen.size() >= k_enough) return true;
  }
  return false;
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
  if (is_various(result.step_times)) return key;
  append_series(key, result.loss_values);
  const std::string averages = averages_of(result);
  if (result.timestamp.empty() || (result.step_times.empty() && averages.empty())) return "";
  return key + result.timestamp + (result.step_times.empty() ? averages : "");
}

std::vector<std::pair<const LoadedRun*, const LoadedRun*>> find_same_measurements(const Contender& reference,
                                                                                  const Contender& subject) {
  std::map<std::string_view, const LoadedRun*> originals;  // by step times
  for (const LoadedRun& run : reference.runs) originals.try_emplace(bytes_of(run.result.step_times), &run);
  std::vector<std::pair<const LoadedRun*, const LoadedRun*>> same;
  for (const LoadedRun& run : subject.runs)
    if (const auto original = originals.find(bytes_of(run.result.step_times));
        original != originals.end() && is_various(run.result.step_times))
      same.push_back({original->second, &run});
  return same;
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
