#include "run/log_steps.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "extract/course.h"

namespace tprimat::suite {
namespace {

// Steps that are seen together ended one after the other; clocks in logs have no time zone.
void date_new_steps(std::vector<StepRecord>& steps, const std::vector<StepRecord>& before, double now) {
  double end = now;
  for (size_t i = steps.size(); i-- > 0;) {
    if (i < before.size() && before[i].step == steps[i].step) {
      steps[i].unix_time = before[i].unix_time;
      continue;
    }
    steps[i].unix_time = end;
    if (steps[i].time_seconds > 0.0) end -= steps[i].time_seconds;
  }
}

}  // namespace

bool LogSteps::read_new(double now) { return seconds_since(last_read_) >= pause_seconds_ && read_all(now); }

void LogSteps::read_rest(double now) { read_all(now); }

bool LogSteps::read_all(double now) {
  std::error_code unreadable;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_, unreadable));
  if (unreadable || size == size_) return false;
  const auto start = SteadyClock::now();
  std::vector<StepRecord> steps;
  try {
    steps = logs::make_step_records(logs::read_log(path_, {}));
  } catch (const Error&) {  // it cannot be read now: what was read is kept
    last_read_ = SteadyClock::now();
    return false;
  }
  date_new_steps(steps, steps_, now);
  const bool is_new = steps.size() > steps_.size();
  steps_ = std::move(steps);
  size_ = size;
  last_read_ = SteadyClock::now();
  constexpr double k_min = 0.5, k_max = 60.0;
  pause_seconds_ = std::clamp(10.0 * seconds_since(start), k_min, k_max);
  return is_new;
}

}  // namespace tprimat::suite
