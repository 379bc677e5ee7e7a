#include "compare/outlier_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "text/format.h"

namespace tprimat {
namespace {

// Kind of the event, or nothing.
std::string find_cause(const RunResult& run, int64_t step) {
  if (run.events)
    for (const RunEvent& event : *run.events)
      if (event.step && (*event.step == step || *event.step == step - 1)) return event.kind;
  return "";
}

std::string count_causes(const RunResult& run) {
  std::map<std::string, int> counts;
  for (const int64_t step : run.statistics->outliers) ++counts[find_cause(run, step)];
  std::string text;
  for (const auto& [cause, count] : counts)
    if (!cause.empty()) {
      std::string words = cause;
      std::replace(words.begin(), words.end(), '_', ' ');
      text += fmt::format("{}{} with {} {}", text.empty() ? "" : ", ", count,
                          std::string_view("aeiou").find(words.front()) == std::string_view::npos ? "a" : "an", words);
    }
  if (counts.contains("")) text += fmt::format("{}{} unattributed", text.empty() ? "" : ", ", counts[""]);
  return text;
}

// The reason that held a device's clock down in most readings.
std::string describe_throttling(const RunResult& run) {
  double most = 0;
  std::string reason;
  for (const TelemetrySummary& each : run.telemetry)
    if (each.throttle_shares)
      for (const auto& [name, share] : *each.throttle_shares)
        if (share > most) most = share, reason = name;
  if (most <= 0) return "";
  return fmt::format("; the clock was held down in {} of the run's readings ({})", format_percent(most, 0), reason);
}

std::string describe_neighbours(const RunResult& run) {
  for (const TelemetrySummary& each : run.telemetry)
    if (each.others_busy_threads)
      return fmt::format("; other processes kept {:.1f} hardware threads busy", *each.others_busy_threads);
  return "";
}

}  // namespace

std::string describe_outliers(const RunResult& run) {
  const StepStatistics& statistics = *run.statistics;
  return fmt::format("{} of {} steady steps, {}step {}: {}{}{}", statistics.outliers.size(), statistics.count,
                     statistics.outliers.size() == 1 ? "" : "the first is ", statistics.outliers.front(),
                     count_causes(run), describe_throttling(run), describe_neighbours(run));
}

}  // namespace tprimat
