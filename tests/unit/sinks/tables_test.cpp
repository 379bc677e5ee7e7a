#include "sinks/csv.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "result/metrics.h"
#include "unit/sinks/export_samples.h"
#include "unit/temporary_folder.h"

namespace tprimat::results {
namespace {

using namespace test;

constexpr double k_new_year = 1767225600;  // 2026-01-01T00:00:00Z

// RFC 4180, strictly.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        cell += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        cell += text[++i];
      else
        quoted = false;
    } else if (c == '"' && cell.empty()) {
      quoted = true;
    } else if (c == ',' || c == '\n') {
      rows.back().push_back(std::exchange(cell, ""));
      if (c == '\n') rows.emplace_back();
    } else {
      cell += c;
    }
  }
  rows.pop_back();
  return rows;
}

class Table {
 public:
  explicit Table(const std::string& path) : rows_(parse_csv(read_file(path))) {
    for (size_t i = 0; i < rows_[0].size(); ++i) columns_[rows_[0][i]] = i;
    for (const auto& row : rows_) EXPECT_EQ(row.size(), rows_[0].size());
  }
  std::string at(size_t row, const std::string& column) const { return rows_.at(row + 1).at(columns_.at(column)); }
  size_t rows() const { return rows_.size() - 1; }
  size_t columns() const { return columns_.size(); }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::map<std::string, size_t> columns_;
};

TEST(StepRows, HoldWhatIsKnownAndNothingElse) {
  const auto rows = make_step_rows(short_run());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].step, 1);
  EXPECT_FALSE(rows[0].grad_norm);
  EXPECT_FALSE(rows[0].power_watts_per_gpu);
  EXPECT_FALSE(rows[2].loss);
  EXPECT_FALSE(rows[3].learning_rate);
  EXPECT_EQ(rows[3].loss, 8.75);
  EXPECT_EQ(rows[1].tokens_per_second, 64 * 2048 / 0.5);
  EXPECT_EQ(rows[1].validation_loss, 9.125);
  EXPECT_FALSE(rows[0].steady);
  EXPECT_TRUE(rows[3].steady);
}

TEST(StepRows, WithoutStampsTheClockIsStartPlusStepTimes) {
  const auto rows = make_step_rows(short_run());
  EXPECT_EQ(rows[0].unix_time, k_new_year + 2.0);
  EXPECT_EQ(rows[3].unix_time, k_new_year + 3.5);
}

TEST(StepRows, StampsOfTheLogWin) {
  RunResult r = short_run();
  const double none = std::nan("");
  r.reported->unix_time = std::vector<double>{none, 1000.0, none, 1003.0};
  const auto rows = make_step_rows(r);
  EXPECT_EQ(rows[0].unix_time, 999.5);  // the second step took 0.5 s
  EXPECT_EQ(rows[1].unix_time, 1000.0);
  EXPECT_EQ(rows[2].unix_time, 1000.5);
  EXPECT_EQ(rows[3].unix_time, 1003.0);
  EXPECT_EQ(start_of_steps(r), 997.5);
}

TEST(StepRows, ARunThatDoesNotSayWhenItBeganHasNoTimes) {
  RunResult r = short_run();
  r.timestamp = "";
  const auto rows = make_step_rows(r);
  EXPECT_FALSE(rows[0].unix_time);
  EXPECT_EQ(rows[3].time_or_elapsed(), 3.5);
}

TEST(StepRows, NumbersMeansAndLabelsAreThoseOfTheLog) {
  RunResult r = short_run();
  StepSeries steps;
  steps.numbers = {10, 20, 30, 40};
  steps.mean_of = {10, 10, 10, 10};
  steps.labelled = {{30, StepLabel::evaluation}};
  r.steps = steps;
  const auto rows = make_step_rows(r);
  EXPECT_EQ(rows[2].step, 30);
  EXPECT_EQ(rows[2].mean_of, 10);
  EXPECT_EQ(rows[2].label, StepLabel::evaluation);
  EXPECT_FALSE(rows[2].steady);
  EXPECT_EQ(rows[1].unix_time, k_new_year + 25.0);
}

TEST(RunName, NeverLeadsOutOfAFolder) {
  EXPECT_EQ(make_run_name("out/train_cpu_native_llama.json"), "train_cpu_native_llama");
  EXPECT_EQ(make_run_name("a b\"<c>\n$(d).json"), "a_b__c____d_");
  EXPECT_EQ(make_run_name("../..json"), "_");
  EXPECT_EQ(make_run_name("a/..x.json"), "_.x");
  EXPECT_EQ(make_run_name(".json"), "_json");
  EXPECT_EQ(make_run_name("-rf.json"), "_rf");
  EXPECT_EQ(make_run_name(""), "run");
  EXPECT_EQ(make_run_name("caf\xc3\xa9.json"), "caf__");
  EXPECT_LE(make_run_name(std::string(300, 'x') + ".json").size(), 120u);
}

TEST(RunColumns, AreUniqueAndHoldEveryMetric) {
  std::set<std::string> keys;
  for (const RunColumn& column : run_columns()) EXPECT_TRUE(keys.insert(column.key).second) << column.key;
  for (const Metric& metric : metrics()) EXPECT_TRUE(keys.count(std::string(metric.key))) << metric.key;
  for (const char* key : {"run", "model", "global_batch_size", "tensor_model_parallel_size", "device_name"})
    EXPECT_TRUE(keys.count(key)) << key;
}

TEST(CsvSink, WritesARowForEachRunAndStep) {
  const TemporaryFolder folder;
  export_results("csv", folder.path(), {short_run(), empty_run()});
  const Table runs(folder / "runs.csv"), steps(folder / "steps.csv");
  ASSERT_EQ(runs.rows(), 2u);
  EXPECT_EQ(runs.columns(), run_table_columns().size());
  EXPECT_EQ(runs.at(0, "run"), "run1");
  EXPECT_EQ(runs.at(0, "framework"), "mega");
  EXPECT_EQ(runs.at(0, "sequence_length"), "2048");
  EXPECT_EQ(runs.at(0, "median_step_time"), "0.5");
  EXPECT_EQ(runs.at(0, "mfu"), "");
  EXPECT_EQ(runs.at(1, "model"), "nothing");
  EXPECT_EQ(runs.at(1, "tokens_per_second"), "");
  ASSERT_EQ(steps.rows(), 4u);
  EXPECT_EQ(steps.at(3, "run"), "run1");
  EXPECT_EQ(steps.at(3, "step"), "4");
  EXPECT_EQ(steps.at(3, "loss"), "8.75");
  EXPECT_EQ(steps.at(2, "loss"), "");
  EXPECT_EQ(steps.at(1, "unix_time"), "1767225602.5");
}

TEST(CsvSink, TellsHowExpertsWereChosen) {
  const TemporaryFolder folder;
  export_results("csv", folder.path(), {sparse_run(), short_run()});
  const Table runs(folder / "runs.csv"), steps(folder / "steps.csv");
  EXPECT_EQ(runs.at(0, "routing"), "balanced");
  EXPECT_EQ(runs.at(0, "dispatcher"), "deepep");
  EXPECT_EQ(runs.at(0, "experts"), "16");
  EXPECT_EQ(runs.at(0, "experts_per_token"), "2");
  EXPECT_EQ(runs.at(0, "expert_model_parallel_size"), "8");
  EXPECT_EQ(runs.at(0, "expert_tensor_parallel_size"), "1");
  EXPECT_EQ(runs.at(0, "z_loss"), "0.25");
  for (const char* column : {"routing", "dispatcher", "experts", "experts_per_token", "z_loss"})
    EXPECT_EQ(runs.at(1, column), "") << column;
  EXPECT_EQ(steps.at(0, "z_loss"), "0.5");
  EXPECT_EQ(steps.at(2, "z_loss"), "");
  EXPECT_EQ(steps.at(4, "z_loss"), "");
}

TEST(CsvSink, KeepsHostileTextInItsCell) {
  const TemporaryFolder folder;
  export_results("csv", folder.path(), {hostile_run()});
  const Table runs(folder / "runs.csv");
  ASSERT_EQ(runs.rows(), 1u);
  EXPECT_EQ(runs.at(0, "model"), printable(k_hostile));
  EXPECT_EQ(runs.at(0, "status_reason"), printable(k_hostile));
}

TEST(CsvSink, WhatASpreadsheetWouldTakeForAFormulaIsQuoted) {
  const TemporaryFolder folder;
  RunResult r = short_run();
  r.model_info.name = "=HYPERLINK(\"http://x\")";
  r.dataset = "@SUM(1)";
  r.training_config.optimizer = "-1+1";
  r.loss_values[0] = -9.5;
  export_results("csv", folder.path(), {r});
  const Table runs(folder / "runs.csv"), steps(folder / "steps.csv");
  EXPECT_EQ(runs.at(0, "model"), "'=HYPERLINK(\"http://x\")");
  EXPECT_EQ(runs.at(0, "dataset"), "'@SUM(1)");
  EXPECT_EQ(runs.at(0, "optimizer"), "'-1+1");
  EXPECT_EQ(steps.at(0, "loss"), "-9.5");
}

TEST(CsvSink, WritesNoByteZero) {
  const TemporaryFolder folder;
  RunResult r = empty_run();
  r.model_info.name = std::string("a\0b", 3);
  export_results("csv", folder.path(), {r});
  EXPECT_EQ(Table(folder / "runs.csv").at(0, "model"), "a\\x00b");
}

TEST(CsvSink, LeavesTheOldTablesWhereItIsNotFinished) {
  const TemporaryFolder folder;
  export_results("csv", folder.path(), {short_run()});
  const std::string before = read_file(folder / "runs.csv");
  LocalRunner runner;
  {
    const auto sink = find_sink("csv").open({folder.path(), runner});
    sink->add({"other", "other.json", empty_run()});
  }
  EXPECT_EQ(read_file(folder / "runs.csv"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(ParquetSink, NamesWhatBringsPyarrow) {
  struct NoPrograms : ProcessRunner {
    std::unique_ptr<ChildProcess> start(const Command&) override {
      throw Error(Problem{"not installed", "python3", ""}, ExitStatus::missing_component);
    }
  } runner;
  const TemporaryFolder folder;
  try {
    find_sink("parquet").open({folder.path(), runner});
    ADD_FAILURE() << "no complaint";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("pip install pyarrow"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Sinks, AnUnknownFormatIsAskedAbout) {
  try {
    find_sink("promtheus");
    ADD_FAILURE() << "no complaint";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_NE(std::string(error.what()).find("did you mean 'prometheus'?"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tprimat::results
