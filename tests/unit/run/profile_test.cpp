#include "run/profile_run.h"

#include "base/error.h"
#include "base/files.h"
#include "run/profile_window.h"
#include "run/suite_document.h"
#include "suite_fixture.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

TEST(ProfileWindowChoice, TakesSteadySteps) {
  const auto window = [](int64_t steps, std::optional<int64_t> warmup = {}) {
    const StepRange range = choose_window({}, steps, warmup);
    return std::pair(range.first, range.last);
  };
  EXPECT_EQ(window(100), std::pair(int64_t{11}, int64_t{15}));
  EXPECT_EQ(window(20), std::pair(int64_t{11}, int64_t{15}));
  EXPECT_EQ(window(8), std::pair(int64_t{5}, int64_t{7}));
  EXPECT_EQ(window(3), std::pair(int64_t{2}, int64_t{3}));
  EXPECT_EQ(window(1), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(window(100, 30), std::pair(int64_t{31}, int64_t{35}));
  EXPECT_EQ(window(40, 30), std::pair(int64_t{21}, int64_t{25}));
}

TEST(ProfileWindowChoice, TakesTheStepsAskedFor) {
  ProfileRequest request;
  request.steps = parse_step_range("21:23", "--window");
  EXPECT_EQ(choose_window(request, 23, {}).first, 21);
  EXPECT_THROW(choose_window(request, 22, {}), Error);
  EXPECT_EQ(parse_step_range("7", "--window").last, 7);
  for (const char* wrong : {"", "0:3", "5:4", "a:b", "1:2:3", "3:", ":3"})
    EXPECT_THROW(parse_step_range(wrong, "--window"), Error) << wrong;
}

TEST(ProfileWindowChoice, TheRunEndsSoonAfterIt) {
  TrainSpec spec;
  spec.steps = 100;
  spec.optimizer.warmup_steps = 50;
  spec.checkpoint.directory = "checkpoints";
  spec.evaluation.interval = 2;
  const TrainSpec shorter = shorten_to({11, 15}, spec);
  EXPECT_EQ(shorter.steps, 16);
  EXPECT_EQ(shorter.optimizer.warmup_steps, 15);
  EXPECT_TRUE(shorter.checkpoint.directory.empty());
  EXPECT_EQ(shorter.evaluation.interval, 0);
  EXPECT_EQ(shorten_to({98, 100}, spec).steps, 101);  // a trace may be written as the next step begins
}

// The fake trainer leaves what its shell around it writes as a trace.
class ProfileTest : public SuiteTest {
 protected:
  SuitePlan profile_plan(const std::string& trace, const std::vector<std::string>& events = {}) {
    request_.profile = ProfileRequest();
    SuitePlan suite = plan(events);
    for (PlannedRun& run : suite.runs) {
      std::string script = "\"$@\" && printf '%s' \"$TRACE\" > \"$TRACE_FILE\"";
      std::vector<std::string> words = {"/bin/sh", "-c", trace.empty() ? "\"$@\"" : script, "sh"};
      run.plan.command.insert(run.plan.command.begin(), words.begin(), words.end());
      run.plan.environment["TRACE"] = trace;
      run.plan.environment["TRACE_FILE"] = run.plan.trace_path;
    }
    return suite;
  }
  ProfileOutcome only_profile(const SuiteReport& report) {
    EXPECT_TRUE(report.outcomes.empty());
    EXPECT_EQ(report.profiles.size(), 1u);
    return report.profiles.at(0);
  }
};

constexpr const char* k_trace = R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "mm", "ts": 1, "dur": 2}]})";

TEST_F(ProfileTest, HasNamesOfItsOwnAndIsShort) {
  const SuitePlan suite = profile_plan(k_trace);
  ASSERT_EQ(suite.runs.size(), 1u);
  const PlannedRun& run = suite.runs[0];
  EXPECT_EQ(run.plan.trace_path, (output_ / "profile_cpu_gpt_single.json").string());
  EXPECT_EQ(run.plan.result_path, (output_ / "profile_cpu_gpt_single_summary.json").string());
  EXPECT_EQ(run.plan.log_path, (output_ / "runs/profile_cpu_gpt_single/training.log").string());
  EXPECT_EQ(run.spec.steps, 16);
  EXPECT_EQ(run.profile->first_step, 11);
  EXPECT_NE(describe(run).find("profiled by own in steps 11 to 15"), std::string::npos);
  experiment_.runs = 3;
  EXPECT_EQ(profile_plan(k_trace).runs.size(), 1u);
  request_.frameworks = {Framework::native, Framework::tran};
  request_.presence = Presence::any;
  const SuitePlan both = profile_plan(k_trace);
  ASSERT_EQ(both.runs.size(), 2u);
  EXPECT_EQ(both.runs[1].plan.trace_path, (output_ / "profile_cpu_gpt_single_tran.json.gz").string());
}

TEST_F(ProfileTest, ItsNameIsTheOneOfStackModelAndStrategy) {
  put_gpu();
  experiment_.steps = 100;
  request_.profile = ProfileRequest();
  for (const auto& [framework, ending] :
       {std::pair{Framework::nemo, "nsys-rep"}, {Framework::mega, "nsys-rep"}, {Framework::fsdp, "nsys-rep"}}) {
    request_.frameworks = {framework};
    const SuitePlan suite = plan_suite(experiment_, request_, machine_);
    EXPECT_EQ(suite.runs.at(0).plan.trace_path, (output_ / "profile_cuda_gpt_single.").string() + ending);
  }
  experiment_.platforms = {{Platform::amd, PlatformSetup{}}};
  machine_.platform = Platform::amd;
  request_.frameworks = {Framework::prim};
  EXPECT_EQ(plan_suite(experiment_, request_, machine_).runs.at(0).plan.trace_path,
            (output_ / "profile_rocm_gpt_single.json.gz").string());
}

// Primus marks no steps for rocprofv3, which then records all that there are.
TEST_F(ProfileTest, WithoutMarksTheWholeRunIsTheWindow) {
  experiment_.platforms = {{Platform::amd, PlatformSetup{}}};
  machine_.platform = Platform::amd;
  request_.presence = Presence::any;
  request_.frameworks = {Framework::prim};
  request_.profile = ProfileRequest();
  request_.profile->profiler = Profiler::rocprofv3;
  const PlannedRun run = plan_suite(experiment_, request_, machine_).runs.at(0);
  EXPECT_TRUE(run.profile->whole_run);
  EXPECT_EQ(run.spec.steps, 16);
  EXPECT_EQ(run.profile->first_step, 1);
  EXPECT_EQ(run.profile->last_step, 16);
  EXPECT_EQ(run.plan.trace_path, (output_ / "profile_rocm_gpt_single.pftrace").string());
}

TEST_F(ProfileTest, ATraceUnderTheFrameworksOwnNameIsBroughtIn) {
  request_.frameworks = {Framework::tran};
  request_.presence = Presence::any;
  SuitePlan suite = profile_plan(k_trace);
  PlannedRun& run_of_tran = suite.runs.at(0);
  const fs::path folder = fs::path(run_of_tran.request.paths.folder) / "torch_profile/tensorboard";
  write_file_atomically(folder / "host_9.1.pt.trace.json", "of an earlier run");
  run_of_tran.plan.environment["TRACE_FILE"] = (folder / "host_4711.2.pt.trace.json").string();
  const ProfileOutcome outcome = only_profile(run(suite));
  EXPECT_EQ(outcome.status, RunStatus::complete) << outcome.reason.value_or("");
  EXPECT_EQ(outcome.trace, (output_ / "profile_cpu_gpt_single.json.gz").string());
  EXPECT_TRUE(file_text(*outcome.trace).starts_with("\x1f\x8b"));
  EXPECT_EQ(parse_json(read_file(outcome.summary.value()), "summary")["summary"]["host"]["calls"], 1);
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(ProfileTest, ARecordOfTheWholeRunSaysSo) {
  SuitePlan suite = profile_plan(k_trace);
  suite.runs.at(0).profile->whole_run = true;
  const ProfileOutcome outcome = only_profile(run(suite));
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_NE(outcome.warnings[0].find("the whole run, including its start"), std::string::npos) << outcome.warnings[0];
}

TEST_F(ProfileTest, LeavesATraceAndItsSummaryAndNoRate) {
  const SuiteReport report = run(profile_plan(k_trace));
  const ProfileOutcome outcome = only_profile(report);
  EXPECT_EQ(outcome.status, RunStatus::complete) << outcome.reason.value_or("");
  EXPECT_EQ(exit_status_of(report), ExitStatus::done);
  const Json record = parse_json(read_file(outcome.summary.value()), "summary");
  EXPECT_EQ(record["kind"], "profile");
  EXPECT_EQ(record["last_step"], 15);
  EXPECT_EQ(record["summary"]["host"]["calls"], 1);
  EXPECT_EQ(print_json(record).find("tokens_per_second"), std::string::npos);
  EXPECT_EQ(document::describe_report(report).profiles.value().size(), 1u);
  EXPECT_EQ(render_report(report).find("tokens"), std::string::npos);
}

TEST_F(ProfileTest, DoesNotTouchTheMeasuredRun) {
  run(plan({}));
  const fs::path result = output_ / "train_cpu_native_gpt.json", log = output_ / "training_native_gpt.log";
  const std::string before = file_text(result) + file_text(log);
  ASSERT_GT(before.size(), 100u);
  run(profile_plan(k_trace));
  EXPECT_EQ(file_text(result) + file_text(log), before);
}

TEST_F(ProfileTest, ATraceOfAnEarlierRunIsNotThisRuns) {
  run(profile_plan(k_trace));
  const ProfileOutcome outcome = only_profile(run(profile_plan("")));
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_NE(outcome.reason->find("wrote no trace"), std::string::npos) << *outcome.reason;
  EXPECT_FALSE(fs::exists(output_ / "profile_cpu_gpt_single_summary.json"));
}

TEST_F(ProfileTest, ATraceThatCannotBeReadIsKeptWithAWarning) {
  const ProfileOutcome outcome = only_profile(run(profile_plan("{\"traceEvents\": [")));
  EXPECT_EQ(outcome.status, RunStatus::complete);
  ASSERT_EQ(outcome.warnings.size(), 1u);
  EXPECT_NE(outcome.warnings[0].find("not summarised"), std::string::npos);
  EXPECT_TRUE(fs::exists(outcome.trace.value()));
}

TEST_F(ProfileTest, OneThatFailsSaysWhy) {
  const SuiteReport report = run(profile_plan(k_trace, {"say@3=CUDA out of memory", "exit@3=5"}));
  const ProfileOutcome outcome = only_profile(report);
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_NE(outcome.reason->find("out of memory"), std::string::npos);
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  EXPECT_NE(render_report(report).find("out of memory"), std::string::npos);
}

TEST_F(ProfileTest, IsResumedWhereItIsThere) {
  run(profile_plan(k_trace));
  options_.resume = true;
  EXPECT_TRUE(only_profile(run(profile_plan(k_trace))).resumed);
  experiment_.seed += 1;
  EXPECT_FALSE(only_profile(run(profile_plan(k_trace))).resumed);
  fs::remove(output_ / "profile_cpu_gpt_single.json");
  EXPECT_FALSE(only_profile(run(profile_plan(k_trace))).resumed);
}

}  // namespace
}  // namespace tprimat::suite
