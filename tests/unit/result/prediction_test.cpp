#include "result/metrics.h"

#include <gtest/gtest.h>

#include "result/summary.h"
#include "sample_result.h"

namespace tprimat {
namespace {

TEST(Prediction, ErrorsAreRelativeToWhatWasMeasured) {
  RunResult result = sample_result();
  summarise_run(result, {});
  EXPECT_FALSE(step_time_prediction_error(result)) << "nothing was predicted";
  result.prediction = Prediction{};
  EXPECT_FALSE(step_time_prediction_error(result));
  result.prediction->step_time_seconds = 1.1 * result.statistics->median;
  EXPECT_NEAR(*step_time_prediction_error(result), 0.1, 1e-12);
  EXPECT_NEAR(find_metric("step_time_prediction_error")->read(result)->value, 0.1, 1e-12);
}

TEST(Prediction, MemoryIsHeldAgainstWhatTheProgramsCountMeans) {
  RunResult result = sample_result();
  result.prediction = Prediction{};
  result.prediction->memory_gb = 9;
  result.memory_metrics = MemoryMetrics{};
  result.memory_metrics.peak_memory_allocated_gb = 10;
  result.framework = Framework::native;
  EXPECT_NEAR(*memory_prediction_error(result), -0.1, 1e-12);
  result.framework = Framework::mega;
  EXPECT_FALSE(memory_prediction_error(result)) << "tensors alone are not what a GPU holds";
  result.memory_metrics.peak_memory_reserved_gb = 12;
  EXPECT_NEAR(*memory_prediction_error(result), -0.25, 1e-12);
  result.memory_metrics.peak_device_used_gb = 18;
  EXPECT_NEAR(*memory_prediction_error(result), -0.5, 1e-12);
}

TEST(Prediction, WhatIsNotPositiveIsNotKnown) {
  RunResult result = sample_result();
  summarise_run(result, {});
  result.framework = Framework::native;
  for (const double gb : {0.0, -1.0}) {
    result.memory_metrics.peak_memory_allocated_gb = gb;
    EXPECT_FALSE(comparable_memory_gb(result)) << gb;
  }
  result.prediction = Prediction{};
  result.prediction->step_time_seconds = 0;
  EXPECT_FALSE(step_time_prediction_error(result)) << "predicted";
  result.statistics->median = 0;
  EXPECT_FALSE(comparable_step_seconds(result));
}

}  // namespace
}  // namespace tprimat
