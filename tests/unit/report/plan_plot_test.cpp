#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/files.h"
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

// gnuplot itself is the judge of the scripts.
TEST(PlanPlot, GnuplotDrawsThem) {
  if (std::system("command -v gnuplot >/dev/null") != 0)
    GTEST_SKIP() << "gnuplot is missing: apt-get install gnuplot-nox";
  const auto folder = std::filesystem::temp_directory_path() / "tprimat_plan_plot_test";
  const planner::PlannedTable drawn = table_with(100, 125), empty = table_with(100, -1);
  for (const PlotFormat format : {PlotFormat::png, PlotFormat::svg})
    for (const std::string& script : {render_plan_plot({drawn, empty}, format), render_plan_plot({}, format),
                                      render_scaling_plot(two_sizes(), format)}) {
      write_file_atomically(folder / "plot.gp", script);
      const std::string command = "cd " + folder.string() + " && gnuplot plot.gp >image 2>errors";
      EXPECT_EQ(std::system(command.c_str()), 0);
      EXPECT_EQ(read_file(folder / "errors"), "");
    }
  std::filesystem::remove_all(folder);
}

TEST(PlanPlot, LeavesOutWhatNoAxisHolds) {
  const std::string script =
      render_plan_plot({table_with(100, std::numeric_limits<double>::infinity())}, PlotFormat::svg);
  EXPECT_EQ(script.find("inf"), std::string::npos);
  EXPECT_NE(script.find("nothing predicted"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results
