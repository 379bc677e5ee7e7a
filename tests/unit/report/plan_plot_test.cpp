#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "report/plan_plots.h"

namespace tprimat::results {
namespace {

planner::PlannedTable table_with(double published, double predicted) {
  planner::PlannedTable table;
  table.table = "own";
  planner::PlannedRow& row = table.rows.emplace_back();
  row.published = published, row.predicted = predicted, row.error = published / predicted - 1;
  return table;
}

TEST(PlanPlot, HoldsARowAsPublishedAndPredicted) {
  const std::string script = render_plan_plot({table_with(100, 125)}, PlotFormat::png);
  EXPECT_NE(script.find("pngcairo"), std::string::npos);
  EXPECT_NE(script.find("\n100 125\n"), std::string::npos);
  EXPECT_NE(script.find("\n20 100\n"), std::string::npos);  // an error of 20 %, and all rows have no larger one
}

planner::PlanComparison two_sizes() {
  planner::PlanComparison comparison;
  for (const auto& [gpus, rate] : {std::pair{8, 100.0}, {16, 190.0}}) {
    planner::PlanReport& plan = comparison.plans.emplace_back();
    plan.gpu = "it's quick", plan.gpus = gpus, plan.efficiency = rate / gpus / 12.5;
    plan.training.emplace().tokens_per_second = rate;
  }
  return comparison;
}

TEST(ScalingPlot, HoldsItsDataAndQuotesItsNames) {
  const std::string script = render_scaling_plot(two_sizes(), PlotFormat::svg);
  EXPECT_TRUE(script.starts_with("set terminal svg")) << script;
  EXPECT_NE(script.find("8 100 100\n16 190 95\n"), std::string::npos) << script;
  EXPECT_NE(script.find("8 100\n16 200\n"), std::string::npos)
      << script;  // as far as the fewest GPUs' rate would carry
  EXPECT_NE(script.find("['it''s quick']"), std::string::npos) << script;
  EXPECT_NE(script.find("ticks[2] = [8, 16]\n"), std::string::npos) << script;
}

TEST(ScalingPlot, NothingThatFitsIsAnError) {
  planner::PlanComparison comparison = two_sizes();
  for (planner::PlanReport& plan : comparison.plans) plan.training.reset();
  EXPECT_THROW(render_scaling_plot(comparison, PlotFormat::png), Error);
}

TEST(PlanPlot, LeavesOutWhatNoAxisHolds) {
  const std::string script =
      render_plan_plot({table_with(100, std::numeric_limits<double>::infinity())}, PlotFormat::svg);
  EXPECT_EQ(script.find("inf"), std::string::npos);
  EXPECT_NE(script.find("nothing predicted"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results
