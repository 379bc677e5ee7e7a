#include "history/history.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "compare/gates.h"
#include "report/document.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "text/json_fields.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

IndexedFile file_at(int day, double rate, RunStatus status = RunStatus::complete) {
  IndexedFile file{"run_" + std::to_string(day) + ".json", {}, day * 86400.0};
  file.entry.series.model = "llama";
  file.entry.status = status;
  file.entry.figures["tokens_per_second_per_gpu"] = Estimate{rate, rate * 0.998, rate * 1.002};
  return file;
}

TEST(Trends, HoldTheNewestAgainstThePreviousAndTheBest) {
  const std::vector<IndexedFile> files = {file_at(3, 95), file_at(1, 100), file_at(2, 120)};
  const auto trends = gather_trends(files, metrics().front(), {0.01, 0});
  ASSERT_EQ(trends.size(), 1u);
  const Trend& trend = trends[0];
  EXPECT_EQ(trend.points[0].paths, std::vector<std::string>{"run_1.json"}) << "by time, not by name";
  EXPECT_EQ(trend.previous->earlier, 1u);
  EXPECT_EQ(trend.best->earlier, 1u);
  EXPECT_EQ(trend.previous->verdict, TrendVerdict::worse);
  EXPECT_NEAR(trend.previous->change.value, 95.0 / 120 - 1, 1e-12);
  EXPECT_TRUE(trend.newest_is_known());
}

TEST(Trends, LowerIsBetterForStepTimes) {
  std::vector<IndexedFile> files = {file_at(1, 1), file_at(2, 2)};
  for (IndexedFile& file : files) file.entry.figures["mean_step_time"] = file.entry.figures.begin()->second;
  EXPECT_EQ(gather_trends(files, *find_metric("mean_step_time"), {0.01, 0})[0].previous->verdict, TrendVerdict::worse);
  EXPECT_EQ(gather_trends(files, metrics().front(), {0.01, 0})[0].previous->verdict, TrendVerdict::better);
}

TEST(Trends, ABrokenRunCountsForNothing) {
  const auto trend = gather_trends({file_at(1, 100), file_at(2, 50, RunStatus::failed), file_at(3, 100)},
                                   metrics().front(), {0.01, 0})[0];
  EXPECT_EQ(trend.points.size(), 3u);
  EXPECT_EQ(trend.previous->earlier, 0u);
  EXPECT_EQ(trend.previous->verdict, TrendVerdict::same);
}

TEST(Trends, OtherConfigurationsAreOtherSeries) {
  IndexedFile other = file_at(2, 100);
  other.entry.series.global_batch_size = 32;
  EXPECT_EQ(gather_trends({file_at(1, 100), other}, metrics().front(), {0.01, 0}).size(), 2u);
}

TEST(Trends, RepetitionsAreOnePoint) {
  std::vector<IndexedFile> files;
  for (int i = 0; i < 6; ++i) {
    files.push_back(file_at(i / 3, 100 + i % 3));
    files.back().path = "night" + std::to_string(i / 3) + "/t_r" + std::to_string(i % 3 + 1) + ".json";
  }
  const auto trend = gather_trends(files, metrics().front(), {0.01, 0})[0];
  ASSERT_EQ(trend.points.size(), 2u);
  EXPECT_NEAR(trend.points[0].figure->value, 3 / (1 / 100.0 + 1 / 101.0 + 1 / 102.0), 1e-9);
  EXPECT_LT(*trend.points[0].figure->low, 99.8) << "the spread between runs";
}

TEST(Trends, CopiesOfOneRunCountOnce) {
  std::vector<IndexedFile> files = {file_at(1, 100), file_at(2, 101), file_at(2, 101), file_at(3, 101)};
  files[2].path = "backup/other.json", files[3].path = "later.json";
  for (size_t i = 1; i < 4; ++i) files[i].entry.measurement = "same";
  files[0].entry.measurement = "";
  const auto trend = gather_trends(files, metrics().front(), {0.01, 0})[0];
  ASSERT_EQ(trend.points.size(), 2u);
  EXPECT_EQ(trend.points[1].paths, std::vector<std::string>{"backup/other.json"}) << "the first by name of one time";
  ASSERT_EQ(trend.points[1].copies.size(), 2u);
  EXPECT_EQ(trend.points[1].copies[1].path, "later.json");
  EXPECT_EQ(trend.points[1].copies[1].of, "backup/other.json");
}

TEST(Trends, ARepetitionThatIsACopyAddsNoRun) {
  std::vector<IndexedFile> files = {file_at(1, 100), file_at(1, 100)};
  files[0].path = "t_r1.json", files[1].path = "t_r2.json";
  files[0].entry.measurement = files[1].entry.measurement = "same";
  const auto trend = gather_trends(files, metrics().front(), {0.01, 0.02})[0];
  ASSERT_EQ(trend.points.size(), 1u);
  EXPECT_EQ(trend.points[0].paths.size(), 1u);
}

TEST(Trends, ShiftsAreDated) {
  std::vector<IndexedFile> files;
  for (int i = 0; i < 20; ++i) files.push_back(file_at(i, (i < 12 ? 100 : 90) + 0.1 * (i % 3)));
  std::reverse(files.begin(), files.end());
  const auto trend = gather_trends(files, metrics().front(), {0.01, 0})[0];
  ASSERT_EQ(trend.shifts.size(), 1u);
  EXPECT_EQ(trend.points[trend.known[trend.shifts[0].at]].paths[0], "run_12.json");
}

// From +10 % to -1.15 % would be a change of -111.5 %.
TEST(Trends, AFigureThatMayBeNegativeHasNoPercentageChange) {
  const Metric& metric = *find_metric("memory_prediction_error");
  std::vector<IndexedFile> files = {file_at(1, 0.1), file_at(2, 0.1)};
  for (IndexedFile& file : files)
    file.entry.figures[std::string(metric.key)] = Estimate{file.unix_time > 86400 ? -0.0115 : 0.1, {}, {}};
  const auto trend = gather_trends(files, metric, {0.01, 0})[0];
  EXPECT_EQ(trend.known.size(), 2u);
  EXPECT_FALSE(trend.previous || trend.best);
}

TEST(Sparkline, DrawsLeastToMost) {
  EXPECT_EQ(draw_sparkline({1, 2, 8}), "▁▂█");
  EXPECT_EQ(draw_sparkline({5, 5}), "▅▅");
  EXPECT_EQ(draw_sparkline({}), "");
}

class Histories : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tprimat_histories_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void add(int day, double step_time, const std::function<void(RunResult&)>& change = {}) {
    const std::string name = "run_" + std::to_string(day) + ".json";
    RunResult result = noisy_run(name, Platform::nvd, Framework::nemo, step_time, static_cast<uint64_t>(day)).result;
    result.timestamp = "2026-01-0" + std::to_string(day) + "T00:00:00Z";
    if (change) change(result);
    write_run_result(folder_ / name, result, Survives::kill);
  }
  History gated(const std::string& gate, const std::string& baseline = "") const {
    return read_history(folder_, {.compare = {.baseline = baseline, .gates = {parse_gate(gate)}}});
  }
  fs::path folder_;
};

TEST_F(Histories, GateTheNewestAgainstTheOneBefore) {
  add(1, 0.5), add(2, 1.0), add(3, 1.1);
  EXPECT_EQ(history_status(gated("tokens_per_second < -3%")), ExitStatus::gate_failed);
  EXPECT_EQ(history_status(gated("tokens_per_second < -20%")), ExitStatus::done);
  EXPECT_EQ(history_status(gated("tokens_per_second < -20%", "best")), ExitStatus::gate_failed);
  EXPECT_EQ(history_status(gated("tokens_per_second < -20%", "run_1")), ExitStatus::gate_failed);
  EXPECT_THROW(gated("tokens_per_second < -20%", "run_9"), Error);
}

TEST_F(Histories, AFirstResultAnswersNoQuestion) {
  add(1, 1.0);
  const History history = gated("tokens_per_second < -3%");
  EXPECT_EQ(history_status(history), ExitStatus::inconclusive);
  EXPECT_NE(describe_gate(history.comparison.gates[0]).find("no earlier result"), std::string::npos);
}

TEST_F(Histories, ABrokenNewestRunIsInvalid) {
  add(1, 1.0);
  add(2, 1.0, [](RunResult& result) { result.status = RunStatus::failed; });
  EXPECT_EQ(history_status(read_history(folder_, {})), ExitStatus::work_failed);
  EXPECT_EQ(history_status(gated("tokens_per_second < -3%")), ExitStatus::work_failed);
}

void halve_layers(RunResult& result) {
  result.model_info.shape->num_layers = 2;
  summarise_run(result, stored_options(result));
}

TEST_F(Histories, OtherWorkIsASeriesOfItsOwn) {
  add(1, 1.0), add(2, 1.0), add(3, 0.5, halve_layers);
  const History history = read_history(folder_, {});
  ASSERT_EQ(history.trends.size(), 2u);
  EXPECT_EQ(history.trends[0].points.size(), 2u);
  EXPECT_EQ(history.trends[1].points.size(), 1u);
  EXPECT_FALSE(history.trends[1].previous) << "there is nothing to be better than";
  const std::string text = render_terminal(build_document(history), false, 118);
  EXPECT_EQ(text.find("better"), text.find("better)")) << text;
  EXPECT_NE(text.find("layers 4 against 2"), std::string::npos) << text;
  const Json json = history_to_json(history);
  EXPECT_TRUE(json["series"][0]["other_work"].is_null());
  EXPECT_NE(json["series"][1]["other_work"].get<std::string>().find("run_2.json"), std::string::npos);
  EXPECT_EQ(history_status(gated("tokens_per_second < -3%")), ExitStatus::not_comparable);
  EXPECT_EQ(history_status(gated("tokens_per_second < -3%", "run_1")), ExitStatus::not_comparable);
}

TEST_F(Histories, WorkThatComesBackGoesOnWithItsSeries) {
  add(1, 1.0), add(2, 0.5, halve_layers), add(3, 1.1), add(4, 0.5, halve_layers);
  const History history = read_history(folder_, {});
  ASSERT_EQ(history.trends.size(), 2u);
  EXPECT_EQ(history.trends[0].previous->verdict, TrendVerdict::worse);
  EXPECT_EQ(history.trends[1].points.size(), 2u);
}

TEST_F(Histories, WhatSaysMoreMayBeTheSameWork) {
  add(1, 1.0), add(2, 1.0, [](RunResult& result) { result.training_config.optimizer = "adamw"; });
  EXPECT_EQ(read_history(folder_, {}).trends.size(), 1u);
}

TEST_F(Histories, LossesWithinTheToleranceAreTheSameWork) {
  const auto other_losses = [](RunResult& result) {
    result.training_config.optimizer = "adamw";
    for (double& loss : result.loss_values) loss *= 1.1;
  };
  add(1, 1.0), add(2, 1.0, other_losses);
  EXPECT_EQ(read_history(folder_, {}).trends.size(), 2u);
  EXPECT_EQ(read_history(folder_, {.compare = {.audit = {0.2}}}).trends.size(), 1u);
}

struct DoubtCase {
  const char* name;
  void (*change)(RunResult&);
};
const DoubtCase k_doubts[] = {{"Optimizer", [](RunResult& result) { result.training_config.optimizer = "sgd"; }},
                              {"LearningRate",
                               [](RunResult& result) {
                                 for (double& rate : result.learning_rates) rate *= 0.1;
                               }},
                              {"Loss",
                               [](RunResult& result) {
                                 for (double& loss : result.loss_values) loss *= 0.5;
                               }},
                              {"Layout", [](RunResult& result) {
                                 result.parallelism_config.tensor_model_parallel_size = 4;
                                 result.parallelism_config.pipeline_model_parallel_size = 1;
                                 result.parallelism_config.data_parallel_size = 4;
                               }}};

TEST_F(Histories, NoPointThatTheAuditDoubtsIsBetter) {
  for (const DoubtCase& each : k_doubts) {
    fs::remove_all(folder_);
    const auto plain = [](RunResult& result) { result.training_config.optimizer = "adamw"; };
    add(1, 1.0, plain), add(2, 1.0, plain), add(3, 0.5, each.change);
    const History history = read_history(folder_, {});
    for (const Trend& trend : history.trends)
      for (const auto& step : {trend.previous, trend.best})
        EXPECT_NE(step ? step->verdict : TrendVerdict::same, TrendVerdict::better) << each.name;
    EXPECT_EQ(history_status(gated("tokens_per_second < -3%")), ExitStatus::not_comparable) << each.name;
  }
}

TEST_F(Histories, EveryFormatTellsTheSame) {
  add(1, 1.0), add(2, 1.01), add(3, 1.2);
  const History history = read_history(folder_, {});
  const std::string text = render_terminal(build_document(history), false, 118);
  EXPECT_NE(text.find("worse -16."), std::string::npos) << text;
  EXPECT_NE(text.find("██▁"), std::string::npos) << text;
  EXPECT_NE(render_markdown(build_document(history), "History").find("# History"), std::string::npos);
  const Json json = history_to_json(history);
  EXPECT_EQ(json["series"][0]["points"].size(), 3u);
  EXPECT_EQ(json["series"][0]["against_previous"]["verdict"], "worse");
  EXPECT_EQ(json["series"][0]["against_best"]["file"], "run_1.json");
  const std::string csv = render_csv(history);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
}

TEST_F(Histories, CopiesAreNamedAndMayBeTheBaseline) {
  add(1, 1.0), add(2, 1.1);
  fs::create_directories(folder_ / "backup");
  fs::copy_file(folder_ / "run_1.json", folder_ / "backup/night.json");
  const History history = read_history(folder_, {});
  ASSERT_EQ(history.trends[0].points.size(), 2u);
  EXPECT_EQ(history_to_json(history)["series"][0]["points"][0]["copies"][0]["path"], "run_1.json");
  EXPECT_NE(render_terminal(build_document(history), false, 118).find("run_1.json of backup/night.json"),
            std::string::npos);
  EXPECT_EQ(history_status(gated("tokens_per_second < -3%", "run_1")), ExitStatus::gate_failed);
}

TEST_F(Histories, TheFootnoteSaysWhatWasAdded) {
  add(1, 1.0);
  const auto footnote = [&](double spread) {
    return render_markdown(build_document(read_history(folder_, {.compare = {.assumed_run_spread = spread}})), "");
  };
  EXPECT_NE(footnote(0.015).find("gets an assumed spread between runs of 1.5 %"), std::string::npos);
  EXPECT_NE(footnote(0).find("no spread between runs is added"), std::string::npos);
}

TEST_F(Histories, FiltersAndMetricsAreChecked) {
  add(1, 1.0);
  EXPECT_THROW(read_history(folder_, {.metric = "speed"}), Error);
  EXPECT_THROW(read_history(folder_, {.compare = {.models = {"qwen"}}}), Error);
  EXPECT_EQ(read_history(folder_, {.compare = {.platforms = {Platform::nvd}}}).trends.size(), 1u);
}

}  // namespace
}  // namespace tprimat::results
