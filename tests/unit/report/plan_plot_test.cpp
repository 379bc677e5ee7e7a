#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "report/draw_plot.h"
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

using Pairs = std::vector<std::pair<double, double>>;

Pairs points_of(const Series& series) {
  Pairs pairs;
  for (const Point& point : series.points) pairs.emplace_back(point.x, point.y);
  return pairs;
}

TEST(PlanPlot, HoldsARowAsPublishedAndPredicted) {
  const Picture picture = plot_plan_errors({table_with(100, 125)});
  ASSERT_EQ(picture.sections.at(0).panels.size(), 2u);
  EXPECT_EQ(points_of(picture.sections[0].panels[0].series.at(0)), (Pairs{{100, 125}}));
  // An error of 20 %, and all rows have no larger one.
  const Pairs errors = points_of(picture.sections[0].panels[1].series.at(0));
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NEAR(errors[0].first, 20, 1e-9);
  EXPECT_EQ(errors[1].second, 100);
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

TEST(ScalingPlot, HoldsItsData) {
  const Picture picture = plot_scaling(two_sizes());
  const std::vector<Panel>& panels = picture.sections.at(0).panels;
  ASSERT_EQ(panels.at(0).series.size(), 2u);  // as far as the fewest GPUs' rate would carry, and what is reached
  EXPECT_EQ(points_of(panels[0].series[0]), (Pairs{{8, 100}, {16, 200}}));
  EXPECT_EQ(points_of(panels[0].series[1]), (Pairs{{8, 100}, {16, 190}}));
  EXPECT_EQ(points_of(panels.at(1).series.at(0)), (Pairs{{8, 100}, {16, 95}}));
  EXPECT_EQ(panels[0].x.ticks, (std::vector<double>{8, 16}));
  EXPECT_NE(render_svg(picture).find(">it's quick</text>"), std::string::npos);
}

TEST(ScalingPlot, NothingThatFitsIsAnError) {
  planner::PlanComparison comparison = two_sizes();
  for (planner::PlanReport& plan : comparison.plans) plan.training.reset();
  EXPECT_THROW(plot_scaling(comparison), Error);
}

TEST(PlanPlot, LeavesOutWhatNoAxisHolds) {
  for (const double predicted : {std::numeric_limits<double>::infinity(), -1.0, 0.0, 1e300}) {
    const Picture picture = plot_plan_errors({table_with(100, predicted)});
    EXPECT_EQ(picture.sections[0].panels[0].message, "nothing predicted") << predicted;
    EXPECT_EQ(render_svg(picture).find("inf"), std::string::npos) << predicted;
  }
}

}  // namespace
}  // namespace tprimat::results
