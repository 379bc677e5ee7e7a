#include "run/reporters.h"

#include <gtest/gtest.h>

#include <vector>

namespace tprimat::suite {
namespace {

std::vector<StepRecord> steps_of(const std::vector<double>& seconds) {
  std::vector<StepRecord> steps;
  for (const double each : seconds) {
    steps.emplace_back();
    steps.back().step = static_cast<int64_t>(steps.size());
    steps.back().time_seconds = each;
  }
  return steps;
}

TEST(Progress, LeavesTheFirstStepOutOfTheRate) {
  const Progress progress = measure_progress(steps_of({9.0, 0.5, 0.5}), 13, 100);
  EXPECT_EQ(progress.step, 3);
  EXPECT_DOUBLE_EQ(progress.tokens_per_second.value(), 200.0);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds.value(), 5.0);
  EXPECT_DOUBLE_EQ(measure_progress(steps_of({2.0}), 2, 100).tokens_per_second.value(), 50.0);
  EXPECT_FALSE(measure_progress({}, 10, 100).tokens_per_second.has_value());
  EXPECT_FALSE(measure_progress(steps_of({0.0}), 10, 100).tokens_per_second.has_value());
}

TEST(Progress, SaysWhatIsKnown) {
  Progress progress;
  progress.step = 5;
  progress.steps = 10;
  EXPECT_EQ(render_progress_line(progress), "step 5/10");
  progress.loss = 4.5;
  progress.power_watts = 212.4;
  EXPECT_EQ(render_progress_line(progress), "step 5/10  loss 4.5000  212 W");
  EXPECT_EQ(render_progress_bar(progress, 80), "[##########..........] step 5/10  loss 4.5000  212 W");
  EXPECT_EQ(render_progress_bar(progress, 12), "step 5/10  l");
}

}  // namespace
}  // namespace tprimat::suite
