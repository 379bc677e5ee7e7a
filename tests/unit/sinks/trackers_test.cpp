#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <sstream>

#include "base/files.h"
#include "extract/dialects.h"
#include "extract/dialects/tfrecord.h"
#include "text/json.h"
#include "unit/sinks/export_samples.h"
#include "unit/temporary_folder.h"

namespace tprimat::results {
namespace {

using namespace test;
namespace fs = std::filesystem;

std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), folder).string());
  return files;
}

TEST(TensorboardSink, OurReaderFindsTheSameSteps) {
  const TemporaryFolder folder;
  const RunResult r = short_run();
  export_results("tensorboard", folder.path(), {r});
  const std::string bytes = read_file(folder / "tensorboard/run1/events.out.tfevents.0.tprimat");
  logs::LogBuilder builder;
  logs::find_dialect("tfevents").read_document(bytes, builder);
  const logs::ExtractedLog log = builder.take();
  ASSERT_EQ(log.steps.size(), 4u);
  EXPECT_EQ(*log.steps[3].time_seconds, 0.5);
  EXPECT_EQ(*log.steps[3].loss, 8.75);
  EXPECT_FALSE(log.steps[2].loss.known());
  EXPECT_EQ(*log.steps[1].learning_rate, static_cast<float>(2e-4));
  EXPECT_EQ(*log.steps[1].memory_allocated_gb, 40.5);
  EXPECT_EQ(*log.steps[1].power_watts_per_gpu, 650.5);
  EXPECT_EQ(*log.steps[1].tokens_per_second, 262144);
  EXPECT_EQ(*log.steps[3].unix_time, 1767225603.5);
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(*log.events[0].value, 9.125);
}

TEST(TensorboardSink, ALaterExportReplacesTheFile) {
  const TemporaryFolder folder;
  export_results("tensorboard", folder.path(), {short_run()});
  RunResult later = short_run();
  later.timestamp = "2026-02-01T00:00:00Z";
  export_results("tensorboard", folder.path(), {later});
  EXPECT_EQ(files_below(folder.path()).size(), 1u);
}

TEST(MlflowSink, WritesTheFileStore) {
  const TemporaryFolder folder;
  export_results("mlflow", folder.path(), {short_run()});
  const fs::path experiment = fs::directory_iterator(folder / "mlruns")->path();
  EXPECT_NE(read_file(experiment / "meta.yaml").find("name: tprimat\n"), std::string::npos);
  fs::path run;
  for (const auto& entry : fs::directory_iterator(experiment))
    if (entry.is_directory()) run = entry.path();
  EXPECT_EQ(run.filename().string().size(), 32u);
  EXPECT_EQ(read_file(run / "metrics/step/loss"), "1767225602000 9.5 1\n1767225602500 9.25 2\n1767225603500 8.75 4\n");
  EXPECT_EQ(read_file(run / "metrics/run/median_step_time"), "1767225603500 0.5 0\n");
  EXPECT_EQ(read_file(run / "params/sequence_length"), "2048");
  EXPECT_EQ(read_file(run / "tags/status"), "complete");
  EXPECT_FALSE(fs::exists(run / "metrics/run/mfu"));
  const std::string meta = read_file(run / "meta.yaml");
  EXPECT_NE(meta.find("status: 3\n"), std::string::npos) << meta;
  EXPECT_NE(meta.find("start_time: 1767225600000\n"), std::string::npos) << meta;
}

TEST(MlflowSink, TheSameResultIsTheSameRun) {
  const TemporaryFolder folder;
  export_results("mlflow", folder.path(), {short_run()});
  const auto once = files_below(folder.path());
  export_results("mlflow", folder.path(), {short_run()});
  EXPECT_EQ(files_below(folder.path()), once);
}

TEST(MlflowSink, HostileTextNamesNoFile) {
  const TemporaryFolder outer;
  const fs::path inner = outer.path() / "a 'b\": \n%";
  export_results("mlflow", inner, {hostile_run()});
  for (const std::string& file : files_below(outer.path())) EXPECT_EQ(file.find("etc"), std::string::npos) << file;
  for (const auto& entry : fs::recursive_directory_iterator(inner))
    if (entry.path().filename() == "meta.yaml") {
      const std::string meta = read_file(entry.path());
      EXPECT_NE(meta.find("/a%20%27b%22%3A%20%0A%25/mlruns/"), std::string::npos) << meta;
    }
}

TEST(WandbSink, WritesHistorySettingsSummaryAndTheScript) {
  const TemporaryFolder folder;
  export_results("wandb", folder.path(), {short_run(), hostile_run()});
  EXPECT_EQ(files_below(folder.path()),
            (std::set<std::string>{"wandb-import/import_wandb.py", "wandb-import/runs/run1/config.json",
                                   "wandb-import/runs/run1/history.jsonl", "wandb-import/runs/run1/summary.json",
                                   "wandb-import/runs/run2/config.json", "wandb-import/runs/run2/history.jsonl",
                                   "wandb-import/runs/run2/summary.json"}));
  std::istringstream history(read_file(folder / "wandb-import/runs/run1/history.jsonl"));
  std::vector<Json> rows;
  for (std::string line; std::getline(history, line);) rows.push_back(parse_json(line, "history"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["_step"], 4);
  EXPECT_EQ(rows[3]["_timestamp"], 1767225603.5);
  EXPECT_EQ(rows[3]["train/loss"], 8.75);
  EXPECT_FALSE(rows[2].contains("train/loss"));
  const Json config = parse_json(read_file(folder / "wandb-import/runs/run1/config.json"), "config");
  EXPECT_EQ(config["global_batch_size"], 64);
  EXPECT_FALSE(config.contains("tokens_per_second"));
  const Json summary = parse_json(read_file(folder / "wandb-import/runs/run1/summary.json"), "summary");
  EXPECT_EQ(summary["tokens_per_second"], 262144);
  EXPECT_FALSE(summary.contains("mfu"));
  EXPECT_EQ(parse_json(read_file(folder / "wandb-import/runs/run2/config.json"), "config")["dataset"], k_hostile);
}

}  // namespace
}  // namespace tprimat::results
