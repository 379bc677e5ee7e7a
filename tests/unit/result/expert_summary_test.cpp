#include "result/expert_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

RunResult sparse_result(size_t steps) {
  RunResult result = sample_result(steps);
  result.model_info.shape->experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 128};
  result.experts.emplace();
  return result;
}

bool warns(const RunResult& result, const char* sentence) {
  return std::ranges::find(result.warnings, sentence) != result.warnings.end();
}

TEST(ExpertSummary, ImpossibleEntriesAreLeftOutOneByOne) {
  RunResult result = sparse_result(5);
  result.experts->load_values = {{9.0, 0.1, 2.0, 1e9, 1.5}};
  result.experts->dropped_values = {{0.0, -3.0, 3.5, 0.25, 0.75}};
  result.experts->aux_loss_values = {{0.1, 1e308, -3.0, 0.25, k_nan}};
  result.experts->z_loss_values = {{0.0, std::numeric_limits<double>::infinity(), 0.5, 0.5, 0.5}};
  summarise_run(result, {});
  EXPECT_EQ(result.experts->load, 1.75);
  EXPECT_EQ(result.experts->dropped_share, 0.5);
  EXPECT_EQ(result.experts->aux_loss, 0.25);
  EXPECT_EQ(result.experts->z_loss, 0.5);
  EXPECT_TRUE(std::isnan(result.experts->load_values->at(1)));
  EXPECT_EQ(result.experts->load_values->at(2), 2.0);
  EXPECT_TRUE(warns(result, "impossible loads of experts are left out: 3 of 5, the first is 9"));
  EXPECT_TRUE(warns(result, "impossible shares of dropped tokens are left out: 2 of 5, the first is -3"));
  EXPECT_TRUE(warns(result, "impossible balancing losses are left out: 2 of 5, the first is 1e+308"));
  EXPECT_TRUE(warns(result, "impossible router z-losses are left out: 1 of 5, the first is inf"));
  const std::vector<std::string> once = result.warnings;
  summarise_run(result, {});
  EXPECT_EQ(result.warnings, once);
}

TEST(ExpertSummary, ImpossibleMeansAreLeftOut) {
  RunResult result = sparse_result(5);
  result.experts->load = 8.5;  // of 8 experts
  result.experts->aux_loss = -3.0;
  result.experts->dropped_share = 0.25;
  summarise_run(result, {});
  EXPECT_FALSE(result.experts->load);
  EXPECT_FALSE(result.experts->aux_loss);
  EXPECT_EQ(result.experts->dropped_share, 0.25);
  EXPECT_TRUE(warns(result, "the load of the fullest expert, 8.5, is impossible: it is left out"));
  EXPECT_TRUE(warns(result, "the balancing loss, -3, is impossible: it is left out"));
}

TEST(ExpertSummary, OtherRunsGainNoExperts) {
  RunResult result = sample_result(3);
  summarise_run(result, {});
  EXPECT_FALSE(result.experts);
}

}  // namespace
}  // namespace tprimat
