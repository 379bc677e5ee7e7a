#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "result/step_record.h"
#include "spec/train_spec.h"

namespace tprimat::suite {

// How long a training may run without a step.
struct HangLimits {
  double factor = 20.0;                   // times the time of a step; 0: no limit
  double floor_seconds = 60.0;            // minimum
  std::optional<double> startup_seconds;  // before the first steps and after the last one; 0: no limit
};

// Adjusts them to the training's pauses between steps, and to a GPU or CPU.
HangLimits limits_of(const HangLimits& asked, const TrainSpec& spec, Platform platform);

// Distinguishes a hung training from a slow one by its earlier steps. Times are seconds since its start.
class HangWatch {
 public:
  HangWatch(const HangLimits& limits, int64_t steps_asked) : limits_(limits), steps_asked_(steps_asked) {}

  void look(const std::vector<StepRecord>& steps, double now);

  // Seconds since the last step, once the next one is late; shown to the user.
  std::optional<double> late_seconds(double now) const;

  // "hung: no step for 120 s after step 37, where the median step takes 2.1 s"
  std::optional<std::string> find_hang(double now) const;

 private:
  double allowance() const;
  bool knows_pace() const;

  HangLimits limits_;
  int64_t steps_asked_;
  size_t seen_ = 0;
  int64_t last_step_ = 0;
  double last_news_ = 0.0;
  double step_time_ = 0.0;   // median
  double pace_ = 0.0;        // the same, or the time between arrivals where that is longer
  std::deque<double> gaps_;  // between arrivals, which may bring several steps
};

}  // namespace tprimat::suite
