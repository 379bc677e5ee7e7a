#include "report/line_chart.h"

#include <gtest/gtest.h>

namespace tprimat::results {
namespace {

ChartPanel sample_panel() {
  ChartPanel panel{"speed", "GPUs", "tokens/s", true, true, false, "", {8, 16}, {}};
  panel.series.push_back({"it's quick", {{8, 100}, {16, 190}}, true, false});
  panel.series.push_back({"ideal", {{8, 100}, {16, 200}}, true, true});
  return panel;
}

TEST(LineChart, HoldsItsDataAndQuotesItsNames) {
  const std::string script = render_line_charts("title", "subtitle", {sample_panel()}, PlotFormat::svg);
  EXPECT_TRUE(script.starts_with("set terminal svg")) << script;
  EXPECT_NE(script.find("8 100\n16 190\n"), std::string::npos) << script;
  EXPECT_NE(script.find("title 'it''s quick'"), std::string::npos) << script;
  EXPECT_NE(script.find("set xtics ('8' 8, '16' 16)\n"), std::string::npos) << script;
}

TEST(LineChart, SeriesOfOnePlaceHaveOneColourInEveryPanel) {
  const std::string script = render_line_charts("", "", {sample_panel(), sample_panel()}, PlotFormat::png);
  const size_t first = script.find("$series0 using"), second = script.rfind("$series0 using");
  ASSERT_NE(first, second);
  EXPECT_EQ(script.substr(first, 60), script.substr(second, 60));
}

}  // namespace
}  // namespace tprimat::results
