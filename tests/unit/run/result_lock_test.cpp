#include "run/result_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "result/result_file.h"
#include "suite_fixture.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class ResultLocks : public SuiteTest {
 protected:
  fs::path lock() const { return output_ / "runs" / "train_cpu_native_gpt.lock"; }

  std::string refusal() const {
    try {
      const ResultLock mine(lock());
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::work_failed);
      return error.what();
    }
  }

  // A process that runs `work` and then waits to be killed.
  template <class Work>
  pid_t start_holder(Work&& work) const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t process = ::fork();
    if (process == 0) {
      work();
      [[maybe_unused]] const ssize_t written = ::write(ends[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
    return process;
  }

  static void kill_at_once(pid_t process) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }

  // Writes the lock of a holder whose system has taken the lock itself back.
  void write_lock(const std::string& boot, double seconds_ago) const {
    write_file_atomically(lock(), R"({"host": "node7", "boot": ")" + boot +
                                      R"(", "processes": "pid:[1]", "process": 4711, "started": "99", )"
                                      R"("since": "2026-01-01T00:00:00Z"})");
    const auto then = static_cast<time_t>(unix_time_seconds() - seconds_ago);
    const timespec times[2] = {{then, 0}, {then, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, lock().c_str(), times, 0), 0);
  }
};

TEST_F(ResultLocks, OneHasItAndTheOtherIsToldWho) {
  const pid_t holder = start_holder([&] { new ResultLock(lock()); });
  const std::string text = refusal();
  EXPECT_NE(text.find("process " + std::to_string(holder) + " on "), std::string::npos) << text;
  EXPECT_NE(text.find(", since 20"), std::string::npos) << text;
  kill_at_once(holder);
  EXPECT_EQ(refusal(), "") << "a dead holder blocks";
  EXPECT_FALSE(fs::exists(lock()));
}

TEST_F(ResultLocks, AStoppedHolderKeepsIt) {
  const pid_t holder = start_holder([&] { new ResultLock(lock()); });
  ::kill(holder, SIGSTOP);
  EXPECT_NE(refusal(), "");
  kill_at_once(holder);
}

// Where a file system keeps its locks to one machine, another one's holder is known by touching its file.
TEST_F(ResultLocks, AnotherMachinesHolderCountsWhileItTouchesItsFile) {
  write_lock("another boot", 30.0);
  EXPECT_NE(refusal().find("process 4711 on node7, since 2026-01-01"), std::string::npos) << refusal();
  EXPECT_NE(refusal(), "") << "asking keeps it no longer";
  write_lock("another boot", 600.0);
  EXPECT_EQ(refusal(), "");
}

TEST_F(ResultLocks, AFileOfThisMachineWithoutItsLockIsNobodys) {
  write_lock(read_file("/proc/sys/kernel/random/boot_id").substr(0, 36), 0.0);
  EXPECT_EQ(refusal(), "");
  write_file_atomically(lock(), "{\"half\"");
  EXPECT_EQ(refusal(), "");
}

TEST_F(ResultLocks, WhatIsNoFileIsASentence) {
  fs::create_directories(lock().parent_path());
  ASSERT_EQ(::mkfifo(lock().c_str(), 0600), 0);
  EXPECT_NE(refusal().find("is not a file"), std::string::npos) << refusal();
  fs::remove(lock());
  fs::create_symlink(output_ / "elsewhere", lock());
  EXPECT_NE(refusal(), "");
  EXPECT_FALSE(fs::exists(output_ / "elsewhere"));
}

// Two suites in one folder: the second one leaves everything of the first one's run as it is, and does the others.
TEST_F(ResultLocks, ASuiteSkipsWhatAnotherOneRuns) {
  experiment_.runs = 2;
  SuitePlan slow = plan({"hang@3"});
  slow.runs.erase(slow.runs.begin() + 1);
  const fs::path steps = slow.runs[0].plan.steps_path, log = slow.runs[0].plan.log_path;
  const pid_t first = ::fork();
  if (first == 0) {
    run(slow);
    ::_exit(0);
  }
  const auto start = SteadyClock::now();
  while (file_text(log).find("iteration        3") == std::string::npos && seconds_since(start) < 30.0) ::usleep(5000);
  const std::string steps_before = file_text(steps), log_before = file_text(log);
  const SuiteReport report = run(std::vector<std::string>{});
  ASSERT_EQ(report.outcomes.size(), 2u);
  EXPECT_EQ(exit_status_of(report), ExitStatus::work_failed);
  EXPECT_EQ(report.outcomes[0].status, RunStatus::failed);
  EXPECT_NE(report.outcomes[0].reason.value_or("").find("another run is writing this result: process "),
            std::string::npos);
  EXPECT_FALSE(fs::exists(slow.runs[0].plan.result_path));
  EXPECT_EQ(file_text(steps), steps_before);
  EXPECT_EQ(file_text(log), log_before);
  EXPECT_EQ(load_run_result(report.outcomes[1].result_path).step_times.size(), 20u);
  kill_at_once(first);
}

}  // namespace
}  // namespace tprimat::suite
