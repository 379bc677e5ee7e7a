#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "result/result_file.h"
#include "suite_fixture.h"

// What the doctor finds just before each training is part of its result.
namespace tprimat::suite {
namespace {

class NotingReporter : public SilentReporter {
 public:
  void noted(const std::string& sentence) override {
    if (sentence.starts_with("warning: ")) warnings.push_back(sentence);
  }
  std::vector<std::string> warnings;
};

class DoctorRecord : public SuiteTest {
 protected:
  SuiteReport run_examined(const SuitePlan& suite) {
    SuiteContext context = around();
    context.examine = [this](const PlannedRun&) {
      ++examined_;
      return make_doctor_report(
          {{MachineSeverity::ok, "processor", "Test CPU", "", {}},
           {MachineSeverity::warning, "processor", "others keep " + std::to_string(examined_) + " threads busy",
            "stop them", "busy_processor"}});
    };
    return run_suite(suite, options_, context, reporter_);
  }
  int examined_ = 0;
  NotingReporter reporter_;
};

TEST_F(DoctorRecord, EachRunHasItsOwnAndAWarningIsShownOnce) {
  experiment_.runs = 2;
  const SuiteReport report = run_examined(plan({}));
  ASSERT_EQ(report.outcomes.size(), 2u);
  EXPECT_EQ(examined_, 2);
  for (size_t i = 0; i < 2; ++i) {
    const RunResult result = load_run_result(report.outcomes[i].result_path);
    ASSERT_TRUE(result.doctor);
    EXPECT_EQ(result.doctor->passed, 1);
    ASSERT_EQ(result.doctor->findings.size(), 1u);
    EXPECT_EQ(result.doctor->findings[0].what, "others keep " + std::to_string(i + 1) + " threads busy");
  }
  EXPECT_EQ(reporter_.warnings,
            std::vector<std::string>{"warning: processor: others keep 1 threads busy -> stop them"});
}

TEST_F(DoctorRecord, AnotherAttemptIsExaminedAgain) {
  options_.retries = 1;
  const SuiteReport report = run_examined(plan({"exit@3=5"}));
  EXPECT_EQ(examined_, 2);
  EXPECT_EQ(load_run_result(report.outcomes[0].result_path).doctor->findings[0].what, "others keep 2 threads busy");
}

TEST_F(DoctorRecord, OfOtherMachinesNothingIsStoredAndThatIsSaid) {
  SuitePlan suite = plan({});
  suite.runs.front().plan.place = Whereabouts::elsewhere;
  const RunResult result = load_run_result(run_examined(suite).outcomes[0].result_path);
  EXPECT_EQ(examined_, 0);
  EXPECT_FALSE(result.doctor);
  EXPECT_TRUE(std::ranges::any_of(result.warnings, [](const std::string& warning) {
    return warning.find("run tprimat doctor there") != std::string::npos;
  }));
}

TEST_F(DoctorRecord, WithoutAnExaminationThereIsNone) {
  EXPECT_FALSE(load_run_result(run(std::vector<std::string>{}).outcomes[0].result_path).doctor);
}

}  // namespace
}  // namespace tprimat::suite
