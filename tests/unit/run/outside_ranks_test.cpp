#include "run/follow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "result/result_file.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

// A suite whose one run says by a file when its cleanup ran.
class OutsideRanks : public SuiteTest {
 protected:
  SuitePlan marked_plan(const std::vector<std::string>& events, Whereabouts place = Whereabouts::elsewhere) {
    SuitePlan suite = plan(events);
    LaunchPlan& launch = suite.runs.front().plan;
    launch.cleanup_command = {"touch", mark().string()};
    launch.place = place;
    return suite;
  }
  std::filesystem::path mark() const { return output_ / "cleaned"; }
  bool is_marked() const { return std::filesystem::exists(mark()); }
  RunResult result_of(const SuitePlan& suite) const { return load_run_result(suite.runs.front().plan.result_path); }
};

TEST_F(OutsideRanks, AreEndedWhenTheRunIsStopped) {
  options_.time_limit_seconds = 0.3;
  run(marked_plan({"hang@5"}));
  EXPECT_TRUE(is_marked());
}

TEST_F(OutsideRanks, AreEndedWhenTheCommandIsKilled) {
  run(marked_plan({"signal@5=9"}));
  EXPECT_TRUE(is_marked());
}

TEST_F(OutsideRanks, AreNotTouchedWhenTheCommandEnds) {
  run(marked_plan({}));
  EXPECT_FALSE(is_marked());
}

TEST_F(OutsideRanks, ACleanupThatCannotStartEndsNothing) {
  options_.time_limit_seconds = 0.3;
  SuitePlan suite = marked_plan({"hang@5"});
  suite.runs.front().plan.cleanup_command = {"/nowhere/scancel"};
  EXPECT_NE(result_of((run(suite), suite)).status_reason->find("time limit"), std::string::npos);
}

// What this machine is says nothing of those that ran.
TEST_F(OutsideRanks, ElsewhereNothingOfThisMachineIsClaimed) {
  machine_.cpu.model_name = "Processor of this machine";
  const SuitePlan suite = marked_plan({});
  run(suite);
  const RunResult result = result_of(suite);
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_NE(result.gpu_info.device_name, "Processor of this machine");
  EXPECT_TRUE(result.telemetry.empty());
  EXPECT_TRUE(std::any_of(result.warnings.begin(), result.warnings.end(), [](const std::string& warning) {
    return warning.find("the ranks ran on other machines") != std::string::npos;
  }));
}

TEST_F(OutsideRanks, InAContainerTheProcessTreeIsNotRead) {
  LaunchPlan plan;
  const auto has_tree = [&](Whereabouts place) {
    plan.place = place;
    const auto sensors = open_sensors_for(plan, {::getpid(), 1, {}});
    return std::any_of(sensors.begin(), sensors.end(), [](const auto& sensor) { return sensor->name() == "proc"; });
  };
  EXPECT_TRUE(has_tree(Whereabouts::children));
  EXPECT_FALSE(has_tree(Whereabouts::this_machine));
  EXPECT_FALSE(has_tree(Whereabouts::elsewhere));
}

}  // namespace
}  // namespace tprimat::suite
