#include "run/profiled_steps.h"

#include "base/files.h"
#include "result/result_file.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Around the fake trainer a shell leaves what a trainer does that trains two further steps of 10 ms under its profiler.
class ProfiledStepsTest : public SuiteTest {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    experiment_.profile_steps = 2;
  }

  SuitePlan profiled_plan(const std::string& further) {
    SuitePlan suite = plan({});
    for (PlannedRun& run : suite.runs) {
      const std::vector<std::string> words = {"/bin/sh", "-c", "\"$@\" && " + further, "sh"};
      run.plan.command.insert(run.plan.command.begin(), words.begin(), words.end());
      run.plan.environment["FOLDER"] = run.request.paths.folder;
    }
    return suite;
  }

  RunResult result() const { return load_run_result(result_path()); }
  std::string result_path() const { return (output_ / "train_cpu_native_gpt.json").string(); }

  const std::string leave_all_ =
      "mkdir -p \"$FOLDER/profile\" && echo trace > \"$FOLDER/profile/rank_0.json.gz\" && printf '%s\\n' "
      "'{\"step\": 21, \"time_seconds\": 9}' '{\"step\": 22, \"time_seconds\": 0.01}' "
      "'{\"step\": 23, \"time_seconds\": 0.012}' > \"$FOLDER/profiled_steps.jsonl\"";
};

TEST_F(ProfiledStepsTest, LieBesideTheResultAndAreInNoOtherFigure) {
  const SuitePlan suite = profiled_plan(leave_all_);
  EXPECT_EQ(suite.runs.at(0).plan.environment.at("TPRIMAT_PROFILE"),
            "own:22:23:" + (output_ / "runs/train_cpu_native_gpt/profile/rank_{rank}.json.gz").string());
  const std::string report = render_report(run(suite));
  const RunResult stored = result();
  ASSERT_TRUE(stored.profile);
  EXPECT_NE(report.find("profiled steps 22 to 23, "), std::string::npos) << report;
  EXPECT_NE(report.find("than the steady ones: " + (output_ / "train_cpu_native_gpt_profile").string()),
            std::string::npos);
  EXPECT_EQ(stored.profile->profiler, Profiler::own);
  EXPECT_EQ(stored.profile->first_step, 22);
  EXPECT_EQ(stored.profile->last_step, 23);
  EXPECT_EQ(stored.profile->step_times, (std::vector{0.01, 0.012}));
  EXPECT_DOUBLE_EQ(stored.profile->step_time_seconds.value(), 0.011);
  EXPECT_DOUBLE_EQ(stored.profile->cost.value(), 0.011 / stored.statistics->mean - 1);
  EXPECT_EQ(stored.profile->files, std::vector<std::string>{"train_cpu_native_gpt_profile/rank_0.json.gz"});
  EXPECT_EQ(file_text(output_ / stored.profile->files.front()), "trace\n");
  EXPECT_EQ(stored.step_times.size(), 20u);
  EXPECT_EQ(stored.status, RunStatus::complete);
}

TEST_F(ProfiledStepsTest, AResumedSuiteNeedsTheirTraces) {
  const SuitePlan suite = profiled_plan(leave_all_);
  run(suite);
  options_.resume = true;
  EXPECT_TRUE(run(suite).outcomes.at(0).resumed);
  fs::remove(output_ / "train_cpu_native_gpt_profile/rank_0.json.gz");
  EXPECT_FALSE(run(suite).outcomes.at(0).resumed);
  experiment_.profile_steps = 0;
  EXPECT_TRUE(run(plan({})).outcomes.at(0).resumed) << "a result that has more than was asked for is complete";
}

TEST_F(ProfiledStepsTest, ANewRunRemovesThoseOfTheOldOne) {
  run(profiled_plan(leave_all_));
  experiment_.profile_steps = 0;
  run(plan({}));
  EXPECT_FALSE(result().profile);
  EXPECT_FALSE(fs::exists(output_ / "train_cpu_native_gpt_profile"));
}

TEST_F(ProfiledStepsTest, WhatFailsInThemDoesNotSpoilTheMeasurement) {
  run(profiled_plan("exit 3"));
  const RunResult stored = result();
  EXPECT_EQ(stored.status, RunStatus::complete);
  EXPECT_FALSE(stored.profile || stored.status_reason || stored.failure_kind);
  ASSERT_FALSE(stored.warnings.empty());
  EXPECT_NE(print_json(run_result_to_json(stored)).find("but the profiled ones after them failed: exit status 3"),
            std::string::npos);
}

TEST_F(ProfiledStepsTest, AMeasuredStepThatFailsStillDoes) {
  SuitePlan suite = plan({"exit@10=3"});
  run(suite);
  EXPECT_EQ(result().status, RunStatus::failed);
}

TEST_F(ProfiledStepsTest, AFrameworkThatCannotIsMeasuredAsEver) {
  put_gpu();
  request_.frameworks = {Framework::mega, Framework::fsdp};
  const SuitePlan suite = plan_suite(experiment_, request_, machine_);
  ASSERT_EQ(suite.runs.size(), 2u);
  EXPECT_NE(suite.runs[0].unprofiled.find("Megatron-LM ends with the last measured step"), std::string::npos);
  EXPECT_FALSE(suite.runs[0].plan.environment.contains("TPRIMAT_PROFILE"));
  EXPECT_EQ(suite.runs[1].unprofiled, "");
  EXPECT_TRUE(suite.runs[1].plan.environment.at("TPRIMAT_PROFILE").starts_with("torch:22:23:"));
  EXPECT_EQ(suite.runs[1].config_hash.size(), suite.runs[0].config_hash.size());
  experiment_.profile_steps = 0;
  EXPECT_EQ(plan_suite(experiment_, request_, machine_).runs[1].config_hash, suite.runs[1].config_hash)
      << "the training itself is the same";
}

}  // namespace
}  // namespace tprimat::suite
