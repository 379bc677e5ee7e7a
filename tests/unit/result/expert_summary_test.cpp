#include "result/expert_summary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "result/summary.h"
#include "sample_result.h"

namespace tprimat {
namespace {

const double k_nan = std::nan("");

TEST(ExpertSummary, MeansAreOverTheSteadySteps) {
  RunResult result = sample_result(5);
  result.experts.emplace();
  result.experts->load_values = {{9.0, 1.5, k_nan, 2.0, 1.75}};
  result.experts->dropped_values = {{0.5, 0.0, 0.0, 0.25, 0.0}};
  result.experts->z_loss = 0.25;  // without a series, as an older file may have it
  result.steps.emplace().labelled = {{5, StepLabel::evaluation}};
  summarise_run(result, {});
  ASSERT_EQ(result.warmup.steps_excluded, 1);
  EXPECT_EQ(result.experts->load, (1.5 + 2.0) / 2);
  EXPECT_EQ(result.experts->dropped_share, 0.25 / 3);
  EXPECT_EQ(result.experts->z_loss, 0.25);
  EXPECT_FALSE(result.experts->aux_loss);
}

TEST(ExpertSummary, WithoutASteadyFigureThereIsNoMean) {
  RunResult result = sample_result(3);
  result.experts.emplace();
  result.experts->aux_loss = 7.0;
  result.experts->aux_loss_values = {{0.5, k_nan, k_nan}};
  result.experts->load_values = {{1.0}};  // a shorter series
  summarise_run(result, {});
  EXPECT_FALSE(result.experts->aux_loss);
  EXPECT_FALSE(result.experts->load);
}

TEST(ExpertSummary, OtherRunsGainNoExperts) {
  RunResult result = sample_result(3);
  summarise_run(result, {});
  EXPECT_FALSE(result.experts);
}

}  // namespace
}  // namespace tprimat
