// What a training may do wrong, each done by the fake trainer: the run must end within its time, with the right reason,
// with nothing of it left, and the runs after it must not notice.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "result/result_file.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

struct Fault {
  std::string name;
  std::vector<std::string> events;
  RunStatus status = RunStatus::failed;
  std::optional<FailureKind> kind;
  std::string reason;  // a part of it
  size_t steps = 0;
  std::optional<int64_t> rank = {};
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class Faults : public SuiteTest, public ::testing::WithParamInterface<Fault> {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    options_.hang.floor_seconds = 1.5;
    options_.hang.startup_seconds = 3.0;
    options_.time_limit_seconds = 20.0;
  }

  // Every process of this suite has the folder of its output in its environment.
  std::vector<std::string> processes_left() const {
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (!std::all_of(name.begin(), name.end(), ::isdigit) || std::stoi(name) == ::getpid()) continue;
      const bool is_ours = file_text(entry.path() / "environ").find(output_.string()) != std::string::npos;
      if (is_ours) left.push_back(name + " " + file_text(entry.path() / "cmdline"));
    }
    return left;
  }

  // Three runs, of which the second one has the fault.
  SuitePlan plan_with(const std::vector<std::string>& events) {
    experiment_.runs = 3;
    SuitePlan suite = plan({});
    std::vector<std::string>& command = suite.runs[1].plan.command;
    for (std::string event : events) {
      for (const auto& [word, path] : {std::pair{std::string("$LOG"), suite.runs[1].plan.log_path}})
        if (const size_t at = event.find(word); at != std::string::npos) event.replace(at, word.size(), path);
      command.push_back(event);
    }
    return suite;
  }
};

TEST_P(Faults, EndInTimeWithTheirReasonAlone) {
  const Fault& fault = GetParam();
  const auto start = SteadyClock::now();
  const SuiteReport report = run(plan_with(fault.events));
  EXPECT_LT(seconds_since(start), 15.0);
  ASSERT_EQ(report.outcomes.size(), 3u);
  EXPECT_EQ(report.outcomes[0].status, RunStatus::complete);
  EXPECT_EQ(report.outcomes[2].status, RunStatus::complete) << "the run after it must not notice";
  const RunResult result = load_run_result(report.outcomes[1].result_path);
  EXPECT_EQ(result.status, fault.status);
  EXPECT_EQ(result.failure_kind, fault.kind);
  EXPECT_EQ(result.failed_rank, fault.rank);
  EXPECT_EQ(result.step_times.size(), fault.steps);
  EXPECT_NE(result.status_reason.value_or("").find(fault.reason), std::string::npos)
      << result.status_reason.value_or("");
  EXPECT_EQ(processes_left(), std::vector<std::string>{});
}

constexpr RunStatus k_failed = RunStatus::failed, k_invalid = RunStatus::invalid, k_complete = RunStatus::complete;
using enum FailureKind;

INSTANTIATE_TEST_SUITE_P(
    All, Faults,
    ::testing::Values(
        Fault{"exits", {"exit@3=5"}, k_failed, error, "exit status 5: iteration", 3},
        Fault{"segfaults", {"crash@4"}, k_failed, killed, "killed by signal 11 (SIGSEGV)", 4},
        Fault{"aborts", {"signal@2=6"}, k_failed, killed, "killed by signal 6 (SIGABRT)", 2},
        Fault{"throws",
              {"say@2=terminate called after throwing an instance of 'std::bad_alloc'",
               "say@2=  what():  std::bad_alloc", "signal@2=6"},
              k_failed,
              host_out_of_memory,
              "killed by signal 6 (SIGABRT): out of host memory: std::bad_alloc",
              2},
        Fault{"hangs", {"hang@4"}, k_failed, hung, "after step 4, where the median step takes", 4},
        Fault{"hangs deaf", {"deaf@0", "demon@0", "hang@4"}, k_failed, hung, "hung: no step for", 4},
        Fault{"hangs at its start", {"hang@0"}, k_failed, hung, "since its start", 0},
        Fault{"hangs at its end", {"hang@20"}, k_failed, hung, "hung: did not end in the", 20},
        Fault{"hangs since a rank died",
              {"torchrun@4=3", "hang@4"},
              k_failed,
              hung,
              "before that the log shows: rank 3 was killed by signal 9",
              4,
              3},
        Fault{"garbage", {"noise@2", "say@3=\x01\xff\xfe{[(\"", "noise@3"}, k_complete, {}, "", 20},
        Fault{"garbage, then an exit", {"noise@2", "exit@3=1"}, k_failed, error, "exit status 1", 3},
        Fault{"survivors", {"family@0", "demon@0", "exit@5=1"}, k_failed, error, "exit status 1", 5},
        Fault{"survivors of a good run", {"family@0", "demon@0"}, k_complete, {}, "", 20},
        Fault{
            "memory of a GPU",
            {"say@3=[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total "
             "capacity of 79.15 GiB of which 1.00 GiB is free.",
             "exit@3=1"},
            k_failed,
            out_of_memory,
            "out of memory on rank 2: tried to allocate 1.50 GiB (GPU 2 of 79.15 GiB)",
            3,
            2},
        Fault{"a rank under torchrun",
              {"torchrun@5=6", "exit@5=1"},
              k_failed,
              killed,
              "rank 6 was killed by signal 9 (SIGKILL)",
              5,
              6},
        Fault{"a rank under mpirun", {"mpirun@5=1", "exit@5=137"}, k_failed, killed, "exited on signal 9", 5, 1},
        Fault{"a rank under srun",
              {"say@5=srun: error: node7: task 3: Exited with exit code 1", "exit@5=1"},
              k_failed,
              error,
              "task 3: Exited with exit code 1",
              5,
              3},
        Fault{"a rank that Open MPI names",
              {"say@5=  Process name: [[41210,1],7]", "say@5=  Exit code:    5", "exit@5=5"},
              k_failed,
              error,
              "rank 7",
              5,
              7},
        Fault{
            "a collective",
            {"say@5=[rank4]:[E810 03:04:11.061 ProcessGroupNCCL.cpp:683] [Rank 4] Watchdog caught collective operation "
             "timeout: WorkNCCL(SeqNum=12, OpType=ALLGATHER, NumelIn=8, NumelOut=8, Timeout(ms)=60000) ran for 60071 "
             "milliseconds before timing out.",
             "signal@5=6"},
            k_failed,
            collective_failed,
            "collective timeout: ALLGATHER SeqNum=12 on rank 4",
            5,
            4},
        Fault{"a missing module",
              {"say@0=ModuleNotFoundError: No module named 'torch'", "exit@0=1"},
              k_failed,
              missing_module,
              "missing module: ModuleNotFoundError: No module named 'torch'",
              0},
        Fault{"a port in use",
              {"say@0=RuntimeError: The server socket has failed to listen on any local network address. port: 29500, "
               "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
               "exit@0=1"},
              k_failed,
              port_in_use,
              "port in use: ",
              0},
        Fault{"no device",
              {"say@0=RuntimeError: No CUDA GPUs are available", "exit@0=1"},
              k_failed,
              no_device,
              "no device: RuntimeError: No CUDA GPUs are available",
              0},
        Fault{"a full disk",
              {"say@3=OSError: [Errno 28] No space left on device", "exit@3=1"},
              k_failed,
              disk_full,
              "disk full: OSError",
              3},
        Fault{"wrong usage",
              {"say@0=train.py: error: unrecognized arguments: --fast", "exit@0=2"},
              k_failed,
              wrong_usage,
              "wrong usage: train.py: error: unrecognized arguments: --fast",
              0},
        Fault{"a NaN loss", {"nan@10"}, k_invalid, nan_loss, "the loss is not a number from step 11 on", 20},
        Fault{"a NaN loss that it says",
              {"say@6=error: loss of step 7 is not finite", "exit@6=1"},
              k_failed,
              nan_loss,
              "NaN loss: error: loss of step 7 is not finite",
              6},
        Fault{"fewer steps", {"exit@6=0"}, k_invalid, steps_missing, "stopped after step 6 of 20", 6},
        Fault{"no step", {"exit@0=0"}, k_failed, steps_missing, "no step was recorded", 0},
        Fault{"other tokens", {"tokens@4=64"}, k_invalid, wrong_work, "step 5 trained on 64 tokens", 20},
        Fault{"its log is removed", {"unlink@5=$LOG"}, k_complete, {}, "", 20},
        Fault{"its steps are removed", {"slow@0=30", "unlink@15=$TPRIMAT_STEPS"}, k_complete, {}, "", 20},
        Fault{"its steps are removed, and it ends",
              {"slow@0=30", "unlink@15=$TPRIMAT_STEPS", "exit@17=0"},
              k_invalid,
              steps_missing,
              "stopped after step 17 of 20; the step record file was removed after step",
              17}));

bool warns_of(const std::vector<std::string>& warnings, const std::string& start) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& each) { return each.starts_with(start); });
}

TEST_F(Faults, MoreStepsThanAskedForAreSaid) {
  SuitePlan suite = plan_with({});
  suite.runs[1].plan.command[1] = "23";
  const SuiteReport report = run(suite);
  const RunResult result = load_run_result(report.outcomes[1].result_path);
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_TRUE(warns_of(result.warnings, "23 steps recorded, but 20 were requested"));
}

TEST_F(Faults, AWrongLearningRateIsAudited) {
  const SuiteReport report = run(plan_with({"rate@7=0.5"}));
  const RunResult result = load_run_result(report.outcomes[1].result_path);
  ASSERT_EQ(result.config_audit.size(), 1u);
  EXPECT_EQ(result.config_audit[0].key, "learning_rate at step 8");
  EXPECT_EQ(result.config_audit[0].asked, "0.001");
  EXPECT_EQ(result.config_audit[0].effective, "0.5");
  EXPECT_TRUE(load_run_result(report.outcomes[0].result_path).config_audit.empty());
}

TEST_F(Faults, AWrongLearningRateInItsArgumentsIsAudited) {
  const SuiteReport report = run(plan_with({"setting@0=learning_rate 0.5"}));
  const RunResult result = load_run_result(report.outcomes[1].result_path);
  ASSERT_EQ(result.config_audit.size(), 1u);
  EXPECT_EQ(result.config_audit[0].key, "learning_rate");
  EXPECT_EQ(result.config_audit[0].asked, "0.001");
  EXPECT_EQ(result.config_audit[0].effective, "0.5");
  ASSERT_TRUE(result.effective_config);
  EXPECT_EQ(result.effective_config->at("learning_rate"), "0.5");
}

TEST_F(Faults, ALogThatItsTrainingRemovesIsPutBackWhole) {
  const SuiteReport report = run(plan_with({"say@4=before", "unlink@5=$LOG", "say@6=after"}));
  const std::string log = file_text(report.outcomes[1].log_path);
  EXPECT_NE(log.find("before\n"), std::string::npos);
  EXPECT_NE(log.find("after\n"), std::string::npos);
  EXPECT_NE(log.find("iteration       20"), std::string::npos);
  EXPECT_TRUE(warns_of(report.outcomes[1].warnings,
                       "the log was removed or replaced while it was written, and has been put back"));
}

TEST_F(Faults, ALogThatItsTrainingEmptiesIsPutBackWhole) {
  const SuiteReport report = run(plan_with({"slow@0=40", "say@4=before", "truncate@8=$LOG", "say@9=after"}));
  const std::string log = file_text(report.outcomes[1].log_path);
  EXPECT_TRUE(log.starts_with(" iteration        1")) << log.substr(0, 100);
  EXPECT_EQ(log.find("before"), log.rfind("before"));
  EXPECT_NE(log.find("iteration       20"), std::string::npos);
  EXPECT_TRUE(
      warns_of(report.outcomes[1].warnings, "the log was cut short while it was written, and has been put back"));
}

TEST_F(Faults, AFileOfStepsThatIsRemovedIsPutBack) {
  const SuitePlan suite = plan_with({"slow@0=30", "unlink@15=$TPRIMAT_STEPS"});
  const SuiteReport report = run(suite);
  const std::string steps = file_text(suite.runs[1].plan.steps_path);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 20);
  EXPECT_TRUE(warns_of(report.outcomes[1].warnings, "the step record file was removed"));
}

double own_memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024.0;
  return 0.0;
}

// At the speed of the pipe; what is written is read back, so that no byte is lost.
TEST_F(Faults, MuchOutputTakesNoMemory) {
  options_.hang.floor_seconds = 60.0;  // no step happens while it floods, and a slow disk takes its time
  options_.time_limit_seconds = 120.0;
  const double before = own_memory_mb();
  const SuiteReport report = run(plan_with({"flood@3=300"}));
  EXPECT_LT(own_memory_mb() - before, 100.0);
  EXPECT_EQ(report.outcomes[1].status, RunStatus::complete);
  EXPECT_GT(fs::file_size(report.outcomes[1].log_path), 300'000'000u);
}

TEST_F(Faults, AFailedRunIsTriedAgainWhereThatIsAsked) {
  options_.retries = 2;
  SuitePlan suite = plan_with({"exit@3=5"});
  const std::string marker = (output_ / "tried").string();
  const std::string trainer = FAKE_TRAINER;
  fs::create_directories(output_);
  suite.runs[1].plan.command = {
      // fails the first time only
      "sh", "-c", "if mkdir " + marker + "; then exec " + trainer + " 20 5 exit@3=5; fi; exec " + trainer + " 20 5"};
  const SuiteReport report = run(suite);
  const RunResult result = load_run_result(report.outcomes[1].result_path);
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_EQ(result.attempt, 2);
  EXPECT_TRUE(warns_of(result.warnings, "attempt 1 failed: exit status 5"));
  fs::path first = report.outcomes[1].log_path;
  first.replace_extension(".attempt1.log");
  EXPECT_NE(file_text(first).find("iteration        3"), std::string::npos);
  EXPECT_EQ(load_run_result(report.outcomes[0].result_path).attempt, 1);
}

// Interrupts the first pause.
class ImpatientInPauses : public SilentReporter {
 public:
  explicit ImpatientInPauses(int& interrupts) : interrupts_(interrupts) {}
  void noted(const std::string& sentence) override { interrupts_ = sentence.starts_with("cooling down for 1 min"); }

 private:
  int& interrupts_;
};

TEST_F(Faults, ThereIsAPauseBetweenTwoRunsAndItCanBeInterrupted) {
  options_.cool_down_seconds = 0.5;
  const auto start = SteadyClock::now();
  EXPECT_EQ(exit_status_of(run(plan_with({}))), ExitStatus::done);
  EXPECT_GT(seconds_since(start), 1.0);
  options_.cool_down_seconds = 60.0;
  ImpatientInPauses reporter(interrupts_);
  const SuiteReport report = run_suite(plan_with({}), options_, around(), reporter);
  EXPECT_EQ(exit_status_of(report), ExitStatus::interrupted);
  EXPECT_EQ(report.outcomes[0].status, RunStatus::complete);
  EXPECT_EQ(report.outcomes[1].reason, "not started");
}

TEST_F(Faults, ASlowTrainingIsNoHang) {
  options_.hang.floor_seconds = 1.0;
  const SuiteReport report = run(plan_with({"slow@0=100"}));
  EXPECT_EQ(report.outcomes[1].status, RunStatus::complete) << report.outcomes[1].reason.value_or("");
}

TEST_F(Faults, AFactorOfZeroLeavesAHangToTheTimeLimit) {
  options_.hang.factor = 0;
  options_.time_limit_seconds = 2.0;
  const SuiteReport report = run(plan_with({"hang@4"}));
  EXPECT_EQ(load_run_result(report.outcomes[1].result_path).failure_kind, FailureKind::time_limit);
}

}  // namespace
}  // namespace tprimat::suite
