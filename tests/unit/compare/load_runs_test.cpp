#include "compare/load_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "compare/audit.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "unit/compare/sample_runs.h"
#include "unit/temporary_folder.h"

namespace tprimat::results {
namespace {

TEST(LoadRuns, DirectoryNamesWhatItSkips) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  write_run_result(folder / "train_nvd_nemo_llama.json", sample_run("", Platform::nvd, Framework::nemo, 1).result);
  write_file_atomically(folder / "notes.json", "{\"a\": 1}");
  write_file_atomically(folder / "broken.json", "{");
  write_file_atomically(folder / "log.txt", "step 1");
  std::filesystem::create_symlink("loop.json", folder / "loop.json");
  std::filesystem::create_symlink("nowhere", folder / "dangling.json");
  std::filesystem::create_symlink("train_nvd_nemo_llama.json", folder / "once_more.json");
  const LoadedRuns loaded = load_runs({folder.string(), (folder / "train_nvd_nemo_llama.json").string()});
  EXPECT_EQ(loaded.runs.size(), 1u) << "a file named twice counts once";
  ASSERT_EQ(loaded.skipped.size(), 2u);
  EXPECT_NE(loaded.skipped[0].reason.find("JSON"), std::string::npos);
  EXPECT_THROW(load_runs({(folder / "notes.json").string()}), Error);
  EXPECT_THROW(load_runs({(folder / "missing").string()}), Error);
}

TEST(LoadRuns, OfThousandsOfFilesTheSeriesAreNotHeldAndWhatTheyShowIsKnown) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  RunResult result = sample_run("", Platform::nvd, Framework::nemo, 1).result;
  result.step_times[30] *= 3;
  summarise_run(result, {});
  std::vector<double> heat(result.step_times.size(), 0.0);
  heat[30] = 1.0;
  result.step_telemetry.emplace();
  result.step_telemetry->throttle_shares = {{"thermal", heat}};
  result.reported.emplace().loss_scale.emplace();
  for (size_t i = 0; i < result.step_times.size(); ++i) result.reported->loss_scale->push_back(i % 4 < 2 ? 2048 : 1024);
  result.reported->unix_time = result.step_times;
  write_run_result(folder / "0.json", result, Survives::kill);
  for (int i = 1; i <= 1000; ++i)
    std::filesystem::create_hard_link(folder / "0.json", folder / (std::to_string(i) + ".json"));
  const LoadedRuns loaded = load_runs({folder.string()});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(loaded.runs.size(), 1001u);
  const LoadedRun& run = loaded.runs[500];
  EXPECT_FALSE(run.result.step_telemetry.has_value());
  EXPECT_EQ(skipped_updates(run).all, 15);
  EXPECT_EQ(count_skipped_updates(run.result).all, 0) << "the loss scale itself is not held";
  EXPECT_EQ(run.result.reported->unix_time, result.step_times) << "they show copies";
  const auto findings = audit_contender({"A", "label", {run}, {}});
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& each) {
    return each.sentence.find("1 with thermal throttling") != std::string::npos;
  }));
}

}  // namespace
}  // namespace tprimat::results
