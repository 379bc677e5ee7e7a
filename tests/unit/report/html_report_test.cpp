#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/files.h"
#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "report/html/page.h"
#include "report/report.h"
#include "text/json_fields.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

LoadedRun hostile_run(const std::string& evil) {
  LoadedRun run = sample_run(evil + ".json", Platform::nvd, Framework::nemo, 1.0);
  RunResult& r = run.result;
  r.model_info.name = r.gpu_info.device_name = evil;
  r.parallelism_config.strategy_name = r.dataset = r.framework_version = r.config_hash = evil;
  r.status_reason = r.memory_metrics.measurement_method = evil;
  r.status = RunStatus::failed;
  r.warnings = {evil};
  r.environment = {{evil, evil}};
  r.effective_config = {{{evil, evil}}};
  r.config_audit = {{evil, evil, evil}};
  r.warmup.reason = evil;
  r.derived.peak = PeakInfo{evil, 1e15, evil, {}, {}};
  TelemetrySummary sensor;
  sensor.source = evil;
  sensor.notes = {{evil}};
  sensor.throttle_shares = {{{evil, 0.5}}};
  r.telemetry = {sensor};
  return run;
}

TEST(HtmlText, MarkupBecomesText) {
  EXPECT_EQ(escape_html("<a href=\"x\" title='&'>\x07"), "&lt;a href=&quot;x&quot; title=&#39;&amp;&#39;&gt;\\x07");
}

TEST(HtmlText, ScriptDataCannotEndItsElement) {
  const Json value = {{"</script>", "<!-- & -->\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa6"}};
  const std::string text = escape_script_json(value);
  for (const char* part : {"<", ">", "&", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    EXPECT_EQ(text.find(part), std::string::npos) << part;
  EXPECT_EQ(parse_json(text, "page"), value);
}

TEST(HtmlText, BytesThatAreNoTextAreReplaced) {
  EXPECT_NO_THROW(parse_json(escape_script_json(Json("\xff<\xe2\x80")), "page"));
}

TEST(HtmlReport, WhatAFileSaysIsNeverMarkup) {
  for (const std::string evil : {"</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
                                 "\"'><svg onload=x>", "<!--", "</title></style><b>"}) {
    const std::string plain =
        render_html(compare_runs({{sample_run("a.json", Platform::nvd, Framework::nemo, 1)}, {}}, {}));
    LoadedRuns runs{{hostile_run(evil)}, {{evil, evil}}};
    const std::string page = render_html(compare_runs(runs, {}));
    EXPECT_NE(page.find("alert(1)") != std::string::npos, evil.find("alert") == std::string::npos);
    for (const char* tag : {"<script", "</script", "<style", "</style", "</title", "<img", "<svg", "<b>", "<!--"})
      EXPECT_EQ(count_of(page, tag), count_of(plain, tag)) << tag << " of " << evil;
  }
}

TEST(HtmlReport, LoadsNothing) {
  const std::string page =
      render_html(compare_runs({{sample_run("a.json", Platform::nvd, Framework::nemo, 1)}, {}}, {}));
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-"), std::string::npos);
  const std::regex loading("<(script|img|link|iframe)[^>]*(src|href)=\"(?!data:,)|@import|url\\(");
  const std::string own = page.substr(0, page.find("<script type"));  // the library after it loads nothing: tests/html
  EXPECT_FALSE(std::regex_search(own, loading));
}

TEST(HtmlReport, VerdictsAreTheTerminalsSentences) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 3.0),
                   sample_run("b.json", Platform::amd, Framework::prim, 1.0)},
                  {}};
  const Comparison comparison = compare_runs(runs, {});
  const std::string page = render_html(comparison);
  const std::string sentence = headline(comparison, comparison.groups[0], comparison.groups[0].pairs[0]);
  const size_t at = page.find("<li class=\"good\">" + escape_html(sentence) + ".");
  ASSERT_NE(at, std::string::npos) << sentence;
  EXPECT_LT(at, page.find("<table"));
}

TEST(HtmlReport, FiguresStandInFullAndUnknownOnesAreSaid) {
  const Comparison comparison = compare_runs({{sample_run("a.json", Platform::nvd, Framework::nemo, 1)}, {}}, {});
  const std::string page = render_html(comparison);
  const Json json = comparison_to_json(comparison);
  const Json& figures = json["groups"][0]["contenders"][0]["figures"];
  EXPECT_GT(figures.size(), 5u);
  for (const auto& [key, figure] : figures.items())
    EXPECT_NE(page.find(fmt::format("data-value=\"{}\"", figure["value"].get<double>())), std::string::npos) << key;
  EXPECT_NE(page.find("class=\"num more unknown\">not known</td>"), std::string::npos);
  EXPECT_NE(page.find("Unknown for all runs: "), std::string::npos);
  EXPECT_NE(page.find("cost of 1e12 tokens"), std::string::npos);
}

// Beside a dense run, whose cells are then unknown; without one, the table has no such columns.
TEST(HtmlReport, FactsOfExpertsAreColumns) {
  const LoadedRun dense = sample_run("a.json", Platform::nvd, Framework::nemo, 1.0);
  LoadedRun sparse = sample_run("b.json", Platform::amd, Framework::prim, 1.0);
  sparse.result.experts.emplace().routing = Routing::balanced;
  const std::string page = render_html(compare_runs({{dense, sparse}, {}}, {}));
  EXPECT_EQ(count_of(page, "data-key=\"routing\""), 1u);
  EXPECT_EQ(count_of(page, "<td class=\"text routing\">balanced</td>"), 1u);
  EXPECT_EQ(count_of(page, "<td class=\"text routing unknown\">not known</td>"), 1u);
  EXPECT_EQ(count_of(render_html(compare_runs({{dense}, {}}, {})), "data-key=\"routing\""), 0u);
}

TEST(HtmlReport, AuditSplitsFindingFromEvidence) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 3.0),
                   sample_run("b.json", Platform::amd, Framework::prim, 1.0)},
                  {}};
  runs.runs[0].result.training_config.sequence_length = 8192;
  runs.runs[0] = again(runs.runs[0]);
  const std::string table = render_audit(compare_runs(runs, {}));
  EXPECT_NE(table.find("<td>A against B</td><td>the sequence lengths differ, and so does the work per token"
                       "<p class=\"why\">attention costs more per token on longer sequences</p></td>"
                       "<td>8192 against 2048, tokens per step 524288 against 131072</td>"
                       "<td>use one sequence length on both sides</td>"),
            std::string::npos)
      << table;
}

TEST(PageData, HoldsTheNumbersOfTheJson) {
  LoadedRuns runs;
  for (int i = 0; i < 3; ++i)
    runs.runs.push_back(sample_run("run_" + std::to_string(i) + ".json", Platform::nvd, Framework::nemo, 1 + 0.1 * i));
  const Comparison comparison = compare_runs(runs, {});
  const Json json = comparison_to_json(comparison), page = page_to_json(comparison);
  for (size_t c = 0; c < 3; ++c) {
    const Json& own = page["groups"][0]["contenders"][c];
    const Json& other = json["groups"][0]["contenders"][c];
    for (const char* key : {"figures", "facts", "files", "warnings"}) EXPECT_EQ(own[key], other[key]) << key;
    for (size_t i = 0; i < other["findings"].size(); ++i)
      EXPECT_EQ(page["findings"][own["findings"][i].get<size_t>()], other["findings"][i]);
    EXPECT_EQ(own["runs"][0]["step_times"]["y"].size(), 60u);
    EXPECT_FALSE(own["runs"][0]["step_times"].contains("recorded"));
    EXPECT_EQ(own["distribution"]["quantiles"].size(), 101u);
  }
  for (const char* key : {"ratio", "verdict", "headline"})
    EXPECT_EQ(page["groups"][0]["pairs"][2][key], json["groups"][0]["pairs"][2][key]);
}

TEST(PageData, SettingsStandSideBySide) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 3.0),
                   sample_run("b.json", Platform::amd, Framework::prim, 1.0)},
                  {}};
  runs.runs[0].result.environment = {{"kernel", "6.1"}, {"only", "here"}};
  runs.runs[1].result.environment = {{"kernel", "6.1"}};
  std::map<std::string, Json> settings;
  const Json page = page_to_json(compare_runs(runs, {}));
  for (const Json& each : page["groups"][0]["settings"]) settings[each["key"].text()] = each;
  EXPECT_EQ(settings["environment: kernel"], parse_json(R"({"key": "environment: kernel", "values": ["6.1"]})", ""));
  EXPECT_EQ(settings["environment: only"],
            parse_json(R"({"key": "environment: only", "values": ["here"], "of": [0, -1]})", ""));
  EXPECT_EQ(settings["device: device_name"]["of"], parse_json("[0, 1]", ""));
}

TEST(StepPoints, LongSeriesKeepTheirSpikes) {
  RunResult run;
  std::vector<double> series(100'000, 1.0);
  series[54'321] = 9.87654321;
  series[77'777] = NAN;
  const StepPoints points = thin_series(run, series);
  EXPECT_LE(points.values.size(), k_max_drawn_points);
  EXPECT_EQ(points.recorded, series.size());
  const auto spike = std::find(points.values.begin(), points.values.end(), 9.8765);
  ASSERT_NE(spike, points.values.end());
  EXPECT_EQ(points.steps[static_cast<size_t>(spike - points.values.begin())], 54'322);
  EXPECT_TRUE(std::is_sorted(points.steps.begin(), points.steps.end()));
}

TEST(StepPoints, ShortSeriesKeepEveryEntry) {
  const StepPoints points = thin_series(RunResult{}, {1.0, NAN, 2.0});
  EXPECT_EQ(points.steps, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_TRUE(std::isnan(points.values[1]));
}

// Numbers of a derivation, in their order: "8.1e+14", "131072".
std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  const std::regex number("(^|[ (])([0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), number); at != std::sregex_iterator(); ++at)
    numbers.push_back(std::stod((*at)[2].str()));
  return numbers;
}

TEST(Derivations, SubstitutedNumbersGiveTheFigure) {
  LoadedRun run = sample_run("a.json", Platform::nvd, Framework::nemo, 1.5);
  run.result.derived.peak = PeakInfo{"config:mine", 5e14, "made up", {}, {}};
  run.result.derived.usd_per_hour = 24;
  run = again(run);
  const Comparison comparison = compare_runs({{run}, {}}, {});
  const Contender& contender = comparison.groups[0].contenders[0];
  const auto expect = [&](const char* key, auto&& formula) {
    const Metric& metric = *find_metric(key);
    const auto text = derive_figure(contender, metric);
    ASSERT_TRUE(text) << key;
    const double figure = read_figure(contender, metric)->value;
    EXPECT_NEAR(formula(numbers_of(*text)) / figure, 1, 1e-4) << *text;
  };
  using Numbers = std::vector<double>;
  expect("tokens_per_second", [](const Numbers& n) { return n.at(0) * n.at(1) / n.at(2); });
  expect("tokens_per_second_per_gpu", [](const Numbers& n) { return n.at(0) / n.at(1); });
  expect("tflops_per_gpu", [](const Numbers& n) { return n.at(0) * n.at(1) / n.at(2); });
  expect("mfu", [](const Numbers& n) { return n.at(0) * n.at(1) / n.at(2); });
  expect("mean_step_time", [](const Numbers& n) { return n.at(0) / n.at(2); });
  expect("step_time_cv", [](const Numbers& n) { return n.at(0) / n.at(1); });
  expect("usd_per_1e12_tokens", [](const Numbers& n) { return n.at(0) / n.at(1) / n.at(2) * n.at(3); });
  expect("days_per_1e12_tokens", [](const Numbers& n) { return n.at(0) / n.at(1) / n.at(2); });
  expect("days_per_15e12_tokens", [](const Numbers& n) { return n.at(0) / n.at(1) / n.at(2); });
  expect("tokens_per_usd_hour", [](const Numbers& n) { return n.at(0) * n.at(1) / n.at(2); });
}

TEST(Derivations, EveryFigureHasOne) {
  const Comparison comparison = compare_runs({{sample_run("a.json", Platform::nvd, Framework::nemo, 1)}, {}}, {});
  Contender contender = comparison.groups[0].contenders[0];
  RunResult& run = contender.runs[0].result;
  run.memory_metrics.peak_memory_reserved_gb = run.memory_metrics.peak_device_used_gb = 1;
  run.gpu_info.total_memory_gb = 80;
  run.derived.mfu = run.derived.joules_per_token = run.derived.usd_per_1e12_tokens = Estimate{0.5, {}, {}};
  TelemetrySummary sensor;
  sensor.mean_power_watts = 700;
  run.telemetry = {sensor};
  run.prediction = Prediction{};
  run.prediction->memory_gb = run.prediction->step_time_seconds = 2;
  run.time_to_train = TimeToTrain{};
  run.time_to_train->status = "success", run.time_to_train->seconds = 600;
  run.experts.emplace();
  run.experts->load = 1.5, run.experts->dropped_share = 0.1, run.experts->aux_loss = 0.01;
  for (const Metric& metric : metrics()) EXPECT_TRUE(derive_figure(contender, metric)) << metric.key;
}

TEST(Derivations, ARateThatContradictsItsStepsIsNotDerivedFromThem) {
  Comparison comparison = compare_runs({{sample_run("a.json", Platform::nvd, Framework::nemo, 1)}, {}}, {});
  Contender& contender = comparison.groups[0].contenders[0];
  contender.runs[0].result.derived.tokens_per_second->value *= 4;
  EXPECT_NE(derive_figure(contender, *find_metric("tokens_per_second"))->find("contradicts"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results
