#include "report/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "compare/compare_runs.h"
#include "report/draw_plot.h"
#include "result/metrics.h"
#include "text/json_fields.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

Comparison different_work() {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 3.0),
                   sample_run("b.json", Platform::amd, Framework::prim, 1.0)},
                  {}};
  runs.runs[0].result.training_config.sequence_length = 8192;
  runs.runs[0] = again(runs.runs[0]);
  return compare_runs(runs, {});
}

Comparison many_runs(size_t count) {
  LoadedRuns runs;
  for (size_t i = 0; i < count; ++i)
    runs.runs.push_back(sample_run("run_" + std::to_string(i) + ".json", Platform::nvd, Framework::nemo,
                                   1.0 + 0.1 * static_cast<double>(i)));
  return compare_runs(runs, {});
}

TEST(Report, NoFormatNamesAWinnerOfDifferentWork) {
  const Comparison comparison = different_work();
  for (const std::string& text :
       {render_terminal(comparison, true), render_markdown(comparison), print_json(comparison_to_json(comparison)),
        render_csv(comparison), render_svg(plot_comparison(comparison)), render_html(comparison)}) {
    EXPECT_EQ(text.find("x faster"), std::string::npos) << text;
    EXPECT_FALSE(text.empty());
  }
  const Json pair = comparison_to_json(comparison)["groups"][0]["pairs"][0];
  EXPECT_TRUE(pair["verdict"].is_null());
  EXPECT_TRUE(pair["ratio"].is_null());
  EXPECT_FALSE(pair["comparable"].get<bool>());
}

TEST(Report, ColourOnlyWhenAsked) {
  EXPECT_EQ(render_terminal(different_work(), false).find('\033'), std::string::npos);
  EXPECT_NE(render_terminal(different_work(), true).find('\033'), std::string::npos);
}

TEST(Report, AFileCannotSteerTheTerminal) {
  LoadedRuns runs{{sample_run("a\033[2J.json", Platform::nvd, Framework::nemo, 1.0)}, {}};
  RunResult& run = runs.runs[0].result;
  run.model_info.name = "llama\033[31m\n\x07";
  run.gpu_info.device_name = "fast\x7f";
  run.warnings = {"\033]0;evil\x07"};
  const std::string text = render_terminal(compare_runs(runs, {}), false);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f) || c < 0) << static_cast<int>(c);
}

TEST(Report, CsvHasOneLinePerRunAndOneCellPerColumn) {
  const std::string csv = render_csv(many_runs(3));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  const auto cells = [&](size_t begin) {
    return std::count(csv.begin() + static_cast<std::ptrdiff_t>(begin),
                      csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n', begin)), ',');
  };
  EXPECT_EQ(cells(0), cells(csv.find('\n') + 1));
}

TEST(Report, CsvHoldsNoFormulas) {
  LoadedRuns runs;
  for (const char* path : {"=1+1.json", "b.json"})
    runs.runs.push_back(sample_run(path, Platform::nvd, Framework::nemo, 1.0));
  const std::string csv = render_csv(compare_runs(runs, {}));
  EXPECT_NE(csv.find("'=1+1.json"), std::string::npos) << csv;
}

TEST(Report, SkippedFilesAreNamed) {
  Comparison comparison = many_runs(2);
  comparison.skipped.push_back({"odd.json", "is no result"});
  EXPECT_NE(render_markdown(comparison).find("odd.json: is no result"), std::string::npos);
  EXPECT_EQ(comparison_to_json(comparison)["skipped"][0]["path"], "odd.json");
}

TEST(Docs, EveryMetricIsDerived) {
  const std::string page = read_file(std::string(TPRIMAT_SOURCE_DIR) + "/docs/metrics.md");
  for (const Metric& metric : metrics())
    EXPECT_NE(page.find("`" + std::string(metric.key) + "`"), std::string::npos) << metric.key;
}

}  // namespace
}  // namespace tprimat::results
