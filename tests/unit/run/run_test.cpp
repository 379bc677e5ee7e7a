#include "run/run.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "result/result_file.h"
#include "run/peak_source.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

RunResult only_result(const SuiteReport& report) {
  EXPECT_EQ(report.outcomes.size(), 1u);
  return load_run_result(report.outcomes.at(0).result_path);
}

bool is_alive(pid_t process) {
  const std::string stat = file_text("/proc/" + std::to_string(process) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

// Process numbers that the fake trainer wrote into its log.
std::vector<pid_t> family_in(const std::string& log) {
  std::vector<pid_t> family;
  for (size_t at = log.find("family "); at != std::string::npos; at = log.find("family ", at + 1))
    family.push_back(std::stoi(log.substr(at + 7)));
  return family;
}

TEST_F(SuiteTest, ACompleteRunLeavesACompleteResult) {
  const SuiteReport report = run(std::vector<std::string>{});
  EXPECT_EQ(exit_status_of(report), ExitStatus::done);
  const RunResult result = only_result(report);
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_EQ(result.step_times.size(), 20u);
  EXPECT_EQ(result.loss_values.size(), 20u);
  EXPECT_EQ(result.framework, Framework::native);
  EXPECT_EQ(result.gpu_info.software_stack, "cpu");
  EXPECT_EQ(result.gpu_info.device_count, 1);
  EXPECT_EQ(result.model_info.num_parameters, count_parameters(tiny_model("gpt")).total());
  EXPECT_NEAR(result.derived.tokens_per_second->value, 4 * 32 / 0.00503, 2000.0);
  EXPECT_EQ(result.derived.peak->id, "measured:cpu:bf16");
  EXPECT_GT(result.derived.mfu->value, 0.0);
  ASSERT_FALSE(result.telemetry.empty());
  EXPECT_EQ(result.telemetry[0].source, "proc");
  EXPECT_EQ(report.outcomes[0].result_path, (output_ / "train_cpu_native_gpt.json").string());
  EXPECT_NE(file_text(output_ / "training_native_gpt.log").find("iteration       20"), std::string::npos);
}

TEST_F(SuiteTest, OfOurTrainerOnAGpuTheResultNamesPartPeakAndStates) {
  put_gpu();
  experiment_.optimizer.moments = MomentFormat::bf16;
  experiment_.optimizer.master_weights = false;
  SuitePlan suite = plan({});
  const RunResult result = only_result(run(suite));
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_EQ(result.platform, Platform::nvd);
  EXPECT_EQ(result.framework, Framework::native);
  EXPECT_EQ(result.gpu_info.device_name, "NVIDIA H200");
  EXPECT_EQ(result.gpu_info.software_stack, "cuda");
  EXPECT_EQ(result.gpu_info.total_memory_gb, 150);
  EXPECT_EQ(result.derived.peak->flops_per_second, 989e12) << "the catalogue's, of dense bf16";
  EXPECT_GT(result.derived.mfu->value, 0.0);
  EXPECT_EQ(result.training_config.optimizer, "adamw, moments in bf16, no master weights");
  ASSERT_TRUE(result.prediction);
  EXPECT_TRUE(result.prediction->memory_gb);
  EXPECT_FALSE(result.prediction->step_time_seconds);

  for (const auto& [precision, peak] : {std::pair{Precision::tf32, 494.5e12}, std::pair{Precision::fp8, 1979e12}}) {
    suite.runs[0].spec.precision = precision;
    const RunResult other = only_result(run(suite));
    EXPECT_EQ(other.precision, precision);
    EXPECT_EQ(other.derived.peak->flops_per_second, peak);
  }
}

TEST_F(SuiteTest, AResultSaysWhenEachStepEnded) {
  const double before = unix_time_seconds();
  const RunResult result = only_result(run(std::vector<std::string>{}));
  ASSERT_TRUE(result.reported && result.reported->unix_time);
  const std::vector<double>& ends = *result.reported->unix_time;
  ASSERT_EQ(ends.size(), 20u);
  EXPECT_GE(ends.front(), before);
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  EXPECT_LE(ends.back(), unix_time_seconds());
}

struct Failure {
  std::vector<std::string> events;
  RunStatus status;
  std::string reason;
  size_t steps;
};

void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.events.back(); }  // the test's name

class SuiteFailure : public SuiteTest, public ::testing::WithParamInterface<Failure> {};

TEST_P(SuiteFailure, IsRecordedWithItsReasonAndItsSteps) {
  const SuiteReport report = run(GetParam().events);
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  const RunResult result = only_result(report);
  EXPECT_EQ(result.status, GetParam().status);
  EXPECT_EQ(result.status_reason, GetParam().reason);
  EXPECT_EQ(result.step_times.size(), GetParam().steps);
  EXPECT_NE(render_report(report).find(report.outcomes[0].log_path), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, SuiteFailure,
    ::testing::Values(
        Failure{{"signal@7=9"}, RunStatus::failed, "killed by signal 9 (SIGKILL)", 7},
        Failure{{"signal@0=6"}, RunStatus::failed, "killed by signal 6 (SIGABRT)", 0},
        Failure{{"exit@3=5"}, RunStatus::failed, "exit status 5: iteration        3 | lm loss: 2.500000 |", 3},
        Failure{{"say@3=RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", "exit@3=1"},
                RunStatus::failed,
                "out of memory: tried to allocate 2 GiB",
                3},
        Failure{{"say@0=ModuleNotFoundError: No module named 'torch'", "exit@0=1"},
                RunStatus::failed,
                "missing module: ModuleNotFoundError: No module named 'torch'",
                0},
        Failure{{"exit@0=0"}, RunStatus::failed, "no step was recorded", 0},
        Failure{{"exit@6=0"}, RunStatus::invalid, "stopped after step 6 of 20", 6},
        Failure{{"half@6"}, RunStatus::invalid, "stopped after step 6 of 20", 6},
        Failure{{"tokens@4=64"}, RunStatus::invalid, "step 5 trained on 64 tokens instead of 128", 20},
        Failure{{"nan@10"}, RunStatus::invalid, "the loss is not a number from step 11 on", 20}));

TEST_F(SuiteTest, NoiseInTheLogDoesNoHarm) {
  const SuiteReport report = run({"noise@2"});
  EXPECT_EQ(exit_status_of(report), ExitStatus::done);
  EXPECT_GT(fs::file_size(output_ / "training_native_gpt.log"), 3'000'000u);
}

TEST_F(SuiteTest, ATimeLimitEndsAHangingRun) {
  options_.time_limit_seconds = 0.5;
  const SuiteReport report = run({"deaf@0", "family@0", "hang@4"});
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  const RunResult result = only_result(report);
  EXPECT_EQ(result.status_reason, "stopped after its time limit of " + format_duration(0.5));
  EXPECT_EQ(result.step_times.size(), 4u);
  const auto family = family_in(file_text(report.outcomes[0].log_path));
  ASSERT_EQ(family.size(), 1u);
  EXPECT_FALSE(is_alive(family[0]));
}

TEST_F(SuiteTest, AMissingProgramIsARecordedFailure) {
  SuitePlan suite = plan({});
  suite.runs[0].plan.command = {"/no/such/trainer"};
  const SuiteReport report = run(suite);
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  EXPECT_EQ(only_result(report).status_reason,
            "cannot start /no/such/trainer in " + fs::current_path().string() + ": No such file or directory");
}

TEST_F(SuiteTest, OneFailureDoesNotStopTheOthers) {
  experiment_.runs = 3;
  SuitePlan suite = plan({});
  suite.runs[1].plan.command.push_back("signal@2=9");
  const SuiteReport report = run(suite);
  ASSERT_EQ(report.outcomes.size(), 3u);
  EXPECT_EQ(report.outcomes[0].status, RunStatus::complete);
  EXPECT_EQ(report.outcomes[1].status, RunStatus::failed);
  EXPECT_EQ(report.outcomes[2].status, RunStatus::complete);
  EXPECT_EQ(report.outcomes[2].result_path, (output_ / "train_cpu_native_gpt_r3.json").string());
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
}

// Interrupts once a step has been seen, as a user at the keyboard does.
class ImpatientReporter : public SilentReporter {
 public:
  ImpatientReporter(int& interrupts, int64_t after_step) : interrupts_(interrupts), after_step_(after_step) {}
  void progressed(const Progress& progress) override {
    if (progress.step >= after_step_) interrupts_ = 1;
  }

 private:
  int& interrupts_;
  int64_t after_step_;
};

TEST_F(SuiteTest, AnInterruptKeepsTheStepsAndLeavesOutTheRest) {
  experiment_.runs = 2;
  const SuitePlan suite = plan({"family@0", "hang@5"});
  ImpatientReporter reporter(interrupts_, 5);
  const SuiteReport report = run_suite(suite, options_, around(), reporter);
  EXPECT_EQ(exit_status_of(report), ExitStatus::interrupted);
  ASSERT_EQ(report.outcomes.size(), 2u);
  const RunResult result = load_run_result(report.outcomes[0].result_path);
  EXPECT_EQ(result.status, RunStatus::interrupted);
  EXPECT_EQ(result.step_times.size(), 5u);
  EXPECT_EQ(report.outcomes[1].reason, "not started");
  EXPECT_FALSE(fs::exists(suite.runs[1].plan.result_path));
  EXPECT_FALSE(is_alive(family_in(file_text(report.outcomes[0].log_path)).at(0)));
}

TEST_F(SuiteTest, KillingTheChildAtAnyMomentKeepsItsSteps) {
  for (const int milliseconds : {1, 23, 61}) {
    SuitePlan suite = plan({"hang@20"});
    std::thread killer([&] {
      const std::string log = suite.runs[0].plan.log_path;
      while (file_text(log).find("iteration") == std::string::npos)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      for (const auto& entry : fs::directory_iterator("/proc")) {
        const std::string line = file_text(entry.path() / "cmdline"), environment = file_text(entry.path() / "environ");
        if (line.starts_with(FAKE_TRAINER) && environment.find(output_.string()) != std::string::npos)
          ::kill(std::stoi(entry.path().filename().string()), SIGKILL);
      }
    });
    const SuiteReport report = run(suite);
    killer.join();
    const RunResult result = only_result(report);
    EXPECT_EQ(result.status_reason, "killed by signal 9 (SIGKILL)");
    EXPECT_GE(result.step_times.size(), 1u);
    EXPECT_EQ(result.step_times.size(), result.loss_values.size());
    fs::remove_all(output_);
  }
}

TEST_F(SuiteTest, KillingTheSuiteLeavesNoOrphanAndNoHalfFile) {
  const SuitePlan suite = plan({"deaf@0", "family@0", "hang@3"});
  const pid_t suite_process = ::fork();
  if (suite_process == 0) {
    run(suite);
    ::_exit(0);
  }
  const std::string log = suite.runs[0].plan.log_path;
  const auto start = SteadyClock::now();
  while (file_text(log).find("iteration        3") == std::string::npos && seconds_since(start) < 10.0) ::usleep(5000);
  ::kill(suite_process, SIGKILL);
  ::waitpid(suite_process, nullptr, 0);
  const std::vector<pid_t> family = family_in(file_text(log));
  ASSERT_EQ(family.size(), 1u);
  while (is_alive(family[0]) && seconds_since(start) < 15.0) ::usleep(5000);
  EXPECT_FALSE(is_alive(family[0]));
  EXPECT_FALSE(fs::exists(suite.runs[0].plan.result_path));
  for (const auto& entry : fs::recursive_directory_iterator(output_))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST_F(SuiteTest, ResumeSkipsOnlyWhatIsCompleteAndTheSame) {
  experiment_.runs = 2;
  SuitePlan first = plan({});
  first.runs[1].plan.command.push_back("exit@3=1");
  run(first);
  options_.resume = true;
  const SuiteReport second = run(std::vector<std::string>{});
  EXPECT_TRUE(second.outcomes[0].resumed);
  EXPECT_FALSE(second.outcomes[1].resumed);
  EXPECT_EQ(exit_status_of(second), ExitStatus::done);
  experiment_.optimizer.learning_rate *= 2;
  EXPECT_FALSE(run(std::vector<std::string>{}).outcomes[0].resumed);
  std::ofstream(output_ / "train_cpu_native_gpt_r1.json") << "{\"half\": ";
  EXPECT_FALSE(run(std::vector<std::string>{}).outcomes[0].resumed);
}

TEST_F(SuiteTest, AFolderThatCannotBeWrittenIsASentence) {
  std::ofstream(output_) << "a file where the folder should be";
  const SuiteReport report = run(std::vector<std::string>{});
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  EXPECT_NE(report.outcomes[0].reason.value_or("").find("cannot create the folder"), std::string::npos)
      << report.outcomes[0].reason.value_or("");
  EXPECT_TRUE(report.outcomes[0].result_path.empty());
  EXPECT_EQ(render_report(report).find("log:"), std::string::npos) << "there is none";
}

TEST_F(SuiteTest, AFullDiskIsASentence) {
  fs::create_directories(output_);
  if (::mount("tmpfs", output_.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "a small file system can only be mounted by root: run the tests as root";
  const SuiteReport report = run({"noise@2", "hang@20"});
  const std::string reason = report.outcomes[0].reason.value_or("");
  ::umount2(output_.c_str(), MNT_DETACH);
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  EXPECT_NE(reason.find("No space left on device"), std::string::npos) << reason;
}

TEST_F(SuiteTest, WithoutAPeakThereIsNoMfu) {
  SuiteContext context = around();
  context.measure_peak = [](Precision, int64_t) -> std::optional<MeasuredPeak> {
    throw Error(Problem{"no bf16 here", "", ""});
  };
  SilentReporter reporter;
  const SuiteReport report = run_suite(plan({}), options_, context, reporter);
  EXPECT_EQ(exit_status_of(report), ExitStatus::done);
  EXPECT_FALSE(only_result(report).derived.mfu.has_value());
}

TEST_F(SuiteTest, ADoubtfulPeakOfSeveralRunsIsToldOnce) {
  experiment_.runs = 3;
  SuiteContext context = around();
  context.measure_peak = [](Precision, int64_t) {
    return MeasuredPeak{{"measured:cpu:bf16", 1e12, "test"}, "doubtful"};
  };
  SilentReporter reporter;
  const std::string text = render_report(run_suite(plan({}), options_, context, reporter));
  EXPECT_NE(text.find("3 runs: doubtful\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("doubtful"), text.rfind("doubtful")) << text;
}

TEST_F(SuiteTest, ADoubtfulPeakIsWarnedAbout) {
  SuiteContext context = around();
  context.measure_peak = [](Precision, int64_t) {
    return MeasuredPeak{{"measured:cpu:bf16", 1e12, "test"}, "doubtful"};
  };
  SilentReporter reporter;
  const SuiteReport report = run_suite(plan({}), options_, context, reporter);
  EXPECT_NE(render_report(report).find("native gpt (single, run 1): doubtful"), std::string::npos);
  const std::vector<std::string> warnings = only_result(report).warnings;
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), "doubtful"), 1);
}

TEST_F(SuiteTest, ADisturbedPeakBelowTheRateOfARunIsNoPeak) {
  SuiteContext context = around();
  int measured = 0;
  context.measure_peak = [&](Precision, int64_t) {
    ++measured;
    return MeasuredPeak{{"measured:cpu:bf16", 1.0, "test"}, "doubtful"};
  };
  SilentReporter reporter;
  const SuiteReport report = run_suite(plan({}), options_, context, reporter);
  EXPECT_EQ(exit_status_of(report), ExitStatus::done) << render_report(report);
  EXPECT_FALSE(only_result(report).derived.mfu.has_value());
  EXPECT_EQ(measured, 3);
}

TEST_F(SuiteTest, TheSummarySaysWhatTheMachineCanDo) {
  SuiteContext context = around();
  context.measure_peak = [](Precision, int64_t) {
    return MeasuredPeak{{"measured:cpu:bf16", 2e12, "test", 3e10, "test"}, {}};
  };
  SilentReporter reporter;
  const SuiteReport report = run_suite(plan({}), options_, context, reporter);
  const std::string text = render_report(report);
  EXPECT_NE(text.find("of the device's matmul peak, 2.00 TFLOP/s (measured:cpu:bf16); memory bandwidth "
                      "30.0 GB/s (triad)"),
            std::string::npos)
      << text;
  EXPECT_DOUBLE_EQ(*only_result(report).derived.peak->memory_bytes_per_second, 3e10);
}

TEST_F(SuiteTest, RanksShareTheMeasuredPeak) {
  SuiteContext context = around();
  context.machine.cpu.usable_threads = 8;
  std::vector<int64_t> asked;
  context.measure_peak = [&](Precision, int64_t threads) {
    asked.push_back(threads);
    return MeasuredPeak{{"measured:cpu:bf16", 8e12, "test", 4e10, "test"}, {}};
  };
  SilentReporter reporter;
  PeakSource source(context, reporter);
  PlannedRun planned = plan({}).runs.front();
  planned.setup.peak_flops_override.clear();
  planned.spec.threads = 2;
  planned.spec.parallel.data = 4;
  const auto peak = source.find(planned);
  EXPECT_EQ(asked, std::vector<int64_t>{8});
  EXPECT_DOUBLE_EQ(peak->peak.flops_per_second, 2e12);
  EXPECT_DOUBLE_EQ(*peak->peak.memory_bytes_per_second, 1e10);
}

TEST_F(SuiteTest, AConfiguredPeakWins) {
  experiment_.platforms[Platform::cpu].peak_flops_override[Precision::bf16] = 2e12;
  const RunResult result = only_result(run(std::vector<std::string>{}));
  EXPECT_TRUE(result.derived.peak->id.starts_with("config:"));
  EXPECT_DOUBLE_EQ(result.derived.peak->flops_per_second, 2e12);
}

}  // namespace
}  // namespace tprimat::suite
