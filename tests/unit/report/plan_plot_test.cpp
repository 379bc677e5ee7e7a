#include <gtest/gtest.h>

#include <limits>

#include "report/gnuplot_plans.h"

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

TEST(PlanPlot, LeavesOutWhatNoAxisHolds) {
  const std::string script =
      render_plan_plot({table_with(100, std::numeric_limits<double>::infinity())}, PlotFormat::svg);
  EXPECT_EQ(script.find("inf"), std::string::npos);
  EXPECT_NE(script.find("nothing predicted"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results
