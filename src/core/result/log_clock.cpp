#include "result/log_clock.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "result/summary.h"

namespace tprimat {
namespace {

// Without numbers an entry follows the one before.
int64_t steps_between(const RunResult& run, size_t entry) {
  const bool is_numbered = run.steps && run.steps->numbers;
  return is_numbered ? step_number(run, entry) - step_number(run, entry - 1) : entry_span(run, entry);
}

}  // namespace

std::vector<ClockedSteps> clocked_steps(const RunResult& run, size_t first) {
  std::vector<ClockedSteps> clocked;
  if (!run.reported || !run.reported->unix_time) return clocked;
  const std::vector<double>& stamps = *run.reported->unix_time;
  std::set<int64_t> labelled;
  if (run.steps)
    for (const LabelledStep& each : run.steps->labelled) labelled.insert(each.step);
  for (size_t i = std::max<size_t>(1, first); i < std::min(stamps.size(), run.step_times.size()); ++i) {
    const double by_clock = stamps[i] - stamps[i - 1], seconds = run.step_times[i];
    const int64_t span = entry_span(run, i), between = steps_between(run, i);
    if (!std::isfinite(by_clock) || !is_valid_step_time(seconds) || labelled.contains(step_number(run, i))) continue;
    if (between >= span) clocked.push_back({seconds * static_cast<double>(span), by_clock, between == span});
  }
  return clocked;
}

}  // namespace tprimat
