#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "suite_fixture.h"

// A run that continues a checkpoint: its steps keep their numbers, and what was loaded is part of its facts.
namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class LoadedRun : public SuiteTest {
 protected:
  // A checkpoint of step 100, and a training that ends at step 120.
  SuitePlan plan_loaded(const std::vector<std::string>& events) {
    write_file_atomically(checkpoints() / "step_00000100/manifest.json", "{}");
    experiment_.steps = 120;
    request_.load = checkpoints().string();
    SuitePlan suite = plan(events);
    suite.runs.front().plan.command[1] = "20";
    return suite;
  }
  fs::path checkpoints() const { return output_ / "earlier"; }
  static RunResult result_of(const SuiteReport& report) { return load_run_result(report.outcomes.at(0).result_path); }
};

TEST_F(LoadedRun, KeepsTheNumbersOfItsSteps) {
  const RunResult result = result_of(run(plan_loaded({"resume@0=100"})));
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");
  EXPECT_EQ(result.step_times.size(), 20u);
  EXPECT_EQ(step_number(result, 0), 101);
  EXPECT_EQ(steps_reached(result), 120);
  EXPECT_EQ(result.training_config.loaded_checkpoint, checkpoints().string());
  EXPECT_EQ(result.training_config.loaded_step, 100);
  EXPECT_FALSE(result.telemetry.empty()) << "the steady steps are found";
  EXPECT_TRUE(result.statistics);
}

TEST_F(LoadedRun, IsInvalidWhereTheTrainerBeganAnew) {
  const RunResult result = result_of(run(plan_loaded({})));
  EXPECT_EQ(result.status, RunStatus::invalid);
  EXPECT_EQ(result.status_reason, "the training began at step 1, but continues a checkpoint of step 100");
}

TEST_F(LoadedRun, IsInvalidWhereItEndsEarly) {
  const RunResult result = result_of(run(plan_loaded({"resume@0=100", "exit@6=0"})));
  EXPECT_EQ(result.status, RunStatus::invalid);
  EXPECT_EQ(result.status_reason, "stopped after step 106 of 120");
}

TEST_F(LoadedRun, HasAnotherHashThanOneThatBeginsAnew) {
  const std::string loaded = plan_loaded({}).runs[0].config_hash;
  request_.load.reset();
  EXPECT_NE(plan({}).runs[0].config_hash, loaded);
}

TEST_F(LoadedRun, ThatSavesIntoTheFolderItLoadsFromKeepsIt) {
  experiment_.checkpoints.enabled = true;
  const fs::path own = plan({}).runs[0].plan.checkpoints_path;
  write_file_atomically(own / "step_00000100/manifest.json", "{}");
  experiment_.steps = 120;
  request_.load = own.string();
  SuitePlan suite = plan({"resume@0=100"});
  suite.runs.front().plan.command[1] = "20";
  EXPECT_EQ(result_of(run(suite)).status, RunStatus::complete);
  EXPECT_TRUE(fs::exists(own / "step_00000100/manifest.json"));
  EXPECT_FALSE(fs::exists(own.string() + ".before"));
}

TEST_F(LoadedRun, DoesNotReplaceWhatItLoads) {
  experiment_.checkpoints.enabled = true;
  const std::string before = plan({}).runs[0].plan.checkpoints_path + ".before";
  write_file_atomically(fs::path(before) / "step_00000010/manifest.json", "{}");
  request_.load = before;
  try {
    plan({});
    FAIL() << "would remove " << before;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rename that folder first"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tprimat::suite
