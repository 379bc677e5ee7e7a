#include "run/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "run/reporters.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_steps_remembered = 50;
constexpr size_t k_fewest_steps = 3;     // the first ones compile and allocate
constexpr double k_pause_floor = 600.0;  // s, for trainings with evaluations or checkpoints between steps
constexpr double k_startup_gpu = 15 * 60.0, k_startup_cpu = 60 * 60.0;  // s
constexpr double k_late_factor = 3.0, k_late_floor = 5.0;               // steps; s

double median_of(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_step(const std::vector<StepRecord>& steps) {
  std::vector<double> times;
  for (size_t i = steps.size() - std::min(steps.size(), k_steps_remembered); i < steps.size(); ++i)
    if (steps[i].time_seconds > 0.0) times.push_back(steps[i].time_seconds);  // a log may hold steps without a time
  return median_of(std::move(times));
}

}  // namespace

HangLimits limits_of(const HangLimits& asked, const TrainSpec& spec, Platform platform) {
  HangLimits limits = asked;
  const bool pauses = spec.evaluation.interval > 0 || !spec.checkpoint.directory.empty();
  if (pauses) limits.floor_seconds = std::max(limits.floor_seconds, k_pause_floor);
  if (!limits.startup_seconds) limits.startup_seconds = platform == Platform::cpu ? k_startup_cpu : k_startup_gpu;
  return limits;
}

void HangWatch::look(const std::vector<StepRecord>& steps, double now) {
  if (steps.size() == seen_) return;
  if (seen_ > 0) gaps_.push_back(now - last_news_);
  if (gaps_.size() > k_steps_remembered) gaps_.pop_front();
  seen_ = steps.size();
  last_news_ = now;
  last_step_ = steps.empty() ? 0 : steps.back().step;
  step_time_ = median_step(steps);
  pace_ = std::max(step_time_, median_of({gaps_.begin(), gaps_.end()}));
}

bool HangWatch::knows_pace() const { return seen_ >= k_fewest_steps && last_step_ < steps_asked_; }

double HangWatch::allowance() const {
  return knows_pace() ? std::max(limits_.floor_seconds, limits_.factor * pace_) : limits_.startup_seconds.value_or(0.0);
}

std::optional<double> HangWatch::late_seconds(double now) const {
  const double idle = now - last_news_;
  if (!knows_pace() || idle < std::max(k_late_floor, k_late_factor * pace_)) return std::nullopt;
  return idle;
}

std::optional<std::string> HangWatch::find_hang(double now) const {
  const double idle = now - last_news_, allowed = allowance();
  if (limits_.factor <= 0.0 || allowed <= 0.0 || idle < allowed) return std::nullopt;
  const std::string waited = format_wait(idle);
  if (seen_ == 0) return fmt::format("hung: no step in the {} since its start", waited);
  if (last_step_ >= steps_asked_) return fmt::format("hung: did not end in the {} after its last step", waited);
  return fmt::format("hung: no step for {} after step {}, where the median step takes {}", waited, last_step_,
                     format_duration(step_time_));
}

}  // namespace tprimat::suite
