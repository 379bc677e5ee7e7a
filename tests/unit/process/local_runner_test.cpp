#include "process/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "process/interrupt.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

Command shell(const std::string& script) {
  Command command;
  command.argv = {"sh", "-c", script};
  command.grace_seconds = 0.3;
  return command;
}

struct Outcome {
  ExitReason exit;
  std::vector<std::string> lines;
  double seconds = 0.0;
};

Outcome run_to_end(ChildProcess& child) {
  Outcome outcome;
  const auto start = SteadyClock::now();
  std::optional<ExitReason> exit;
  while (!exit && seconds_since(start) < 20.0)
    exit = child.poll(0.1, [&](std::string_view line) { outcome.lines.emplace_back(line); });
  EXPECT_TRUE(exit.has_value()) << "the child never ended";
  outcome.exit = exit.value_or(ExitReason{});
  outcome.seconds = seconds_since(start);
  return outcome;
}

Outcome run_to_end(const Command& command) { return run_to_end(*LocalRunner().start(command)); }

bool is_alive(pid_t process) {  // a zombie is not
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

bool ends_within(pid_t process, double seconds) {
  const auto start = SteadyClock::now();
  while (is_alive(process) && seconds_since(start) < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !is_alive(process);
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Reads lines until `count` have come.
std::vector<std::string> first_lines(ChildProcess& child, size_t count) {
  std::vector<std::string> lines;
  const auto start = SteadyClock::now();
  while (lines.size() < count && seconds_since(start) < 10.0)
    child.poll(0.1, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(LocalRunner, StreamsBothOutputsAndGivesTheExitStatus) {
  const Outcome outcome = run_to_end(shell("echo out; echo err >&2; printf last; exit 3"));
  EXPECT_EQ(outcome.exit, (ExitReason{ExitReason::Kind::exited, 3}));
  EXPECT_EQ(outcome.lines, (std::vector<std::string>{"out", "err", "last"}));
  EXPECT_EQ(to_string(outcome.exit), "exit status 3");
}

TEST(LocalRunner, PassesEnvironmentAndWorkingDirectory) {
  Command command = shell("echo $COLOUR $HOME; pwd");
  command.environment = {{"COLOUR", "green = blue"}, {"HOME", "/elsewhere"}};
  command.working_directory = "/usr";
  EXPECT_EQ(run_to_end(command).lines, (std::vector<std::string>{"green = blue /elsewhere", "/usr"}));
}

TEST(LocalRunner, ReadsItsInputFromAFile) {
  const fs::path input = fs::temp_directory_path() / ("process input " + std::to_string(::getpid()));
  std::ofstream(input) << "one\ntwo\n";
  Command command = shell("cat; echo end");
  EXPECT_EQ(run_to_end(command).lines, (std::vector<std::string>{"end"}));
  command.input_path = input.string();
  EXPECT_EQ(run_to_end(command).lines, (std::vector<std::string>{"one", "two", "end"}));
  fs::remove(input);
  EXPECT_THROW(run_to_end(command), Error);
}

TEST(LocalRunner, KeepsTheLogAsItCame) {
  const fs::path log = fs::temp_directory_path() / ("process_test_" + std::to_string(::getpid())) / "run.log";
  Command command = shell(R"(printf 'a\r\nb\0c\377\n'; printf end)");
  command.log_path = log.string();
  run_to_end(command);
  std::ifstream file(log, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), std::string("a\r\nb\0c\xff\nend", 11));
  fs::remove_all(log.parent_path());
}

TEST(LocalRunner, LosesNothingOfALargeOutput) {
  size_t bytes = 0;
  const auto child = LocalRunner().start(shell("head -c 5000000 /dev/zero | tr '\\0' x"));
  std::optional<ExitReason> exit;
  while (!exit) exit = child->poll(0.1, [&](std::string_view line) { bytes += line.size(); });
  EXPECT_EQ(bytes, 5000000u);
}

TEST(LocalRunner, NamesTheSignalThatKilled) {
  const Outcome outcome = run_to_end(shell("kill -9 $$"));
  EXPECT_EQ(to_string(outcome.exit), "killed by signal 9 (SIGKILL)");
  EXPECT_FALSE(outcome.exit.success());
}

TEST(LocalRunner, SaysThatAProgramIsMissing) {
  Command command;
  command.argv = {"no-such-program-anywhere"};
  try {
    LocalRunner().start(command);
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("no-such-program-anywhere"), std::string::npos);
  }
  command.argv = {"/dev/null"};
  EXPECT_THROW(LocalRunner().start(command), Error);
  Command elsewhere = shell("true");
  elsewhere.working_directory = "/no/such/folder";
  EXPECT_THROW(LocalRunner().start(elsewhere), Error);
}

TEST(LocalRunner, StopsAtTheTimeLimit) {
  Command command = shell("echo started; sleep 30");
  command.time_limit_seconds = 0.3;
  const Outcome outcome = run_to_end(command);
  EXPECT_EQ(outcome.exit.kind, ExitReason::Kind::timed_out);
  EXPECT_EQ(outcome.lines, std::vector<std::string>{"started"});
  EXPECT_LT(outcome.seconds, 3.0);
}

TEST(LocalRunner, KillsWhatIgnoresTheTermSignal) {
  const auto child = LocalRunner().start(shell("trap '' TERM; echo ready; while true; do sleep 0.05; done"));
  first_lines(*child, 1);
  child->stop();
  const Outcome outcome = run_to_end(*child);
  EXPECT_EQ(outcome.exit.kind, ExitReason::Kind::interrupted);
  EXPECT_GT(outcome.seconds, 0.25);
  EXPECT_LT(outcome.seconds, 3.0);
}

TEST(LocalRunner, LetsAProgramEndInOrderWhenStopped) {
  const auto child =
      LocalRunner().start(shell("trap 'echo saved; exit 0' TERM; echo ready; while true; do sleep 0.05; done"));
  first_lines(*child, 1);
  child->stop();
  const Outcome outcome = run_to_end(*child);
  ASSERT_FALSE(outcome.lines.empty());
  EXPECT_EQ(outcome.lines.back(), "saved");
}

// A grandchild that made its own session would survive a kill of the process group.
constexpr const char* k_family = "setsid sleep 60 & echo $!; sleep 61 & echo $!; (setsid sleep 62 & echo $!); ";

TEST(LocalRunner, StopsTheWholeTree) {
  const auto child = LocalRunner().start(shell(std::string(k_family) + "wait"));
  const std::vector<std::string> members = first_lines(*child, 3);
  ASSERT_EQ(members.size(), 3u);
  child->stop();
  run_to_end(*child);
  for (const std::string& member : members) EXPECT_FALSE(is_alive(std::stoi(member))) << member;
}

TEST(LocalRunner, LeavesNothingBehindWhenTheProgramEndsAlone) {
  const Outcome outcome = run_to_end(shell(k_family));
  ASSERT_EQ(outcome.lines.size(), 3u);
  EXPECT_TRUE(outcome.exit.success());
  EXPECT_LT(outcome.seconds, 5.0);
  for (const std::string& member : outcome.lines) EXPECT_FALSE(is_alive(std::stoi(member))) << member;
}

TEST(LocalRunner, DestroyingAChildKillsIt) {
  auto child = LocalRunner().start(shell(std::string(k_family) + "trap '' TERM; wait"));
  const std::vector<std::string> members = first_lines(*child, 3);
  const pid_t leader = child->pid();
  child.reset();
  EXPECT_FALSE(is_alive(leader));
  for (const std::string& member : members) EXPECT_FALSE(is_alive(std::stoi(member))) << member;
}

TEST(LocalRunner, NothingOutlivesAKilledParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto child =
        LocalRunner().start(shell(std::string(k_family) + "trap '' TERM; while true; do sleep 0.05; done"));
    std::string message;
    for (const std::string& member : first_lines(*child, 3)) message += member + " ";
    message += std::to_string(child->pid()) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(ends[1], message.data(), message.size());
    ::pause();
  }
  char buffer[200] = {};
  ASSERT_GT(::read(ends[0], buffer, sizeof buffer - 1), 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  std::istringstream members(buffer);
  for (pid_t member = 0; members >> member;) EXPECT_TRUE(ends_within(member, 5.0)) << member;
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(LocalRunner, AKilledWardenTakesTheProgramWithIt) {
  const auto child =
      LocalRunner().start(shell("ps -o ppid= -p $$ 2>/dev/null || cut -d' ' -f4 /proc/$$/stat; exec sleep 60"));
  const std::vector<std::string> lines = first_lines(*child, 1);
  ASSERT_EQ(lines.size(), 1u);
  ::kill(std::stoi(lines[0]), SIGKILL);
  const Outcome outcome = run_to_end(*child);
  EXPECT_EQ(to_string(outcome.exit), "killed by signal 9 (SIGKILL)");
  EXPECT_TRUE(ends_within(child->pid(), 2.0));
}

// The time limit holds whichever of warden, program and parent somebody stops.
constexpr const char* k_name_warden = "ps -o ppid= -p $$ 2>/dev/null || cut -d' ' -f4 /proc/$$/stat; ";

TEST(LocalRunner, AStoppedWardenDoesNotOutliveTheTimeLimit) {
  Command command = shell(std::string(k_name_warden) + "exec sleep 60");
  command.time_limit_seconds = 1.0;
  const auto child = LocalRunner().start(command);
  const std::vector<std::string> lines = first_lines(*child, 1);
  ASSERT_EQ(lines.size(), 1u);
  ::kill(std::stoi(lines[0]), SIGSTOP);
  const Outcome outcome = run_to_end(*child);
  EXPECT_EQ(outcome.exit.kind, ExitReason::Kind::timed_out);
  EXPECT_FALSE(is_alive(child->pid()));
}

TEST(LocalRunner, AStoppedWardenDoesNotHideTheEnd) {
  const auto child = LocalRunner().start(shell(std::string(k_name_warden) + "sleep 0.3; echo done"));
  const std::vector<std::string> lines = first_lines(*child, 1);
  ASSERT_EQ(lines.size(), 1u);
  ::kill(std::stoi(lines[0]), SIGSTOP);
  EXPECT_EQ(run_to_end(*child).exit, (ExitReason{ExitReason::Kind::exited, 0}));
}

TEST(LocalRunner, AStoppedProgramMayStillEndInOrder) {
  Command command = shell("trap 'echo saved; exit 0' TERM; echo ready; kill -STOP $$; sleep 60");
  command.time_limit_seconds = 0.5;
  command.grace_seconds = 10.0;
  const Outcome outcome = run_to_end(command);
  EXPECT_EQ(outcome.exit.kind, ExitReason::Kind::timed_out);
  ASSERT_FALSE(outcome.lines.empty());
  EXPECT_EQ(outcome.lines.back(), "saved");
}

TEST(LocalRunner, AStoppedParentDoesNotStopTheClock) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    Command command = shell("trap '' TERM; while true; do sleep 0.05; done");
    command.time_limit_seconds = 1.0;
    const auto child = LocalRunner().start(command);
    const pid_t program = child->pid();
    [[maybe_unused]] const ssize_t written = ::write(ends[1], &program, sizeof program);
    ::raise(SIGSTOP);
    ::_exit(run_to_end(*child).exit.kind == ExitReason::Kind::timed_out ? 0 : 1);
  }
  pid_t program = 0;
  ASSERT_EQ(::read(ends[0], &program, sizeof program), static_cast<ssize_t>(sizeof program));
  EXPECT_TRUE(ends_within(program, 15.0));
  ::kill(parent, SIGCONT);
  int status = 0;
  ::waitpid(parent, &status, 0);
  EXPECT_EQ(status, 0) << "not told as a time limit";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(LocalRunner, AKeptDescriptorOutlivesUsUntilTheTreeIsGone) {
  int kept[2], told[2];
  ASSERT_EQ(::pipe2(kept, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe(told), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(kept[0]);
    Command command = shell("trap '' TERM; while true; do sleep 0.05; done");
    command.kept_open = kept[1];
    const auto child = LocalRunner().start(command);
    const pid_t program = child->pid();
    [[maybe_unused]] const ssize_t written = ::write(told[1], &program, sizeof program);
    ::pause();
  }
  ::close(kept[1]);
  pid_t program = 0;
  ASSERT_EQ(::read(told[0], &program, sizeof program), static_cast<ssize_t>(sizeof program));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  char byte = 0;
  EXPECT_EQ(::read(kept[0], &byte, 1), 0);  // waits for the last one who has it open
  EXPECT_FALSE(is_alive(program));
  for (const int end : {kept[0], told[0], told[1]}) ::close(end);
}

TEST(LocalRunner, LeaksNoDescriptorsAndNoZombies) {
  run_to_end(shell("true"));
  const size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) run_to_end(shell("echo x"));
  Command missing;
  missing.argv = {"/no/such/program"};
  for (int i = 0; i < 5; ++i) EXPECT_THROW(LocalRunner().start(missing), Error);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was not collected";
}

// Nor of those that whoever started us left open.
TEST(LocalRunner, ChildrenSeeNoneOfOurDescriptors) {
  const auto other = LocalRunner().start(shell("sleep 60"));
  const int low = ::dup(STDERR_FILENO), high = ::fcntl(STDERR_FILENO, F_DUPFD, 700);
  const Outcome outcome = run_to_end(shell("set -- /proc/$$/fd/*; echo $#"));
  for (const int inherited : {low, high}) ::close(inherited);
  ASSERT_EQ(outcome.lines.size(), 1u);
  EXPECT_LE(std::stoi(outcome.lines[0]), 4);  // 0, 1, 2 and the folder that is listed
}

TEST(LocalRunner, WaitingCostsNoProcessorTime) {
  const auto child =
      LocalRunner().start(shell("exec >/dev/null 2>&1; sleep 0.5"));  // closes its end of the stream at once
  const std::clock_t before = std::clock();
  run_to_end(*child);
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
}

TEST(LocalRunner, AFullDiskUnderTheLogIsAnError) {
  Command command = shell("echo x; sleep 30");
  command.log_path = "/dev/full";
  const auto child = LocalRunner().start(command);
  EXPECT_THROW(
      {
        for (int i = 0; i < 50; ++i) child->poll(0.1, nullptr);
      },
      Error);
}

TEST(RunCaptured, GivesOutputAndStatus) {
  LocalRunner runner;
  const auto captured = run_captured(runner, {"sh", "-c", "echo hello; exit 2"});
  ASSERT_TRUE(captured.has_value());
  EXPECT_EQ(captured->output, "hello\n");
  EXPECT_EQ(captured->exit.code, 2);
  EXPECT_FALSE(run_captured(runner, {"no-such-program-anywhere"}).has_value());
  EXPECT_EQ(run_captured(runner, {"sleep", "30"}, 0.2)->exit.kind, ExitReason::Kind::timed_out);
}

TEST(InterruptGuard, CountsRequestsAndCutsWaitingShort) {
  const auto child = LocalRunner().start(shell("sleep 30"));
  const InterruptGuard guard;
  EXPECT_EQ(guard.count(), 0);
  std::thread user([] {
    block_signals_in_this_thread();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(::getpid(), SIGINT);
  });
  const auto start = SteadyClock::now();
  child->poll(20.0, nullptr);
  user.join();
  EXPECT_LT(seconds_since(start), 5.0);
  EXPECT_EQ(guard.count(), 1);
}

}  // namespace
}  // namespace tprimat
