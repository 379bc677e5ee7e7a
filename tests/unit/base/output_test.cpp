#include "base/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace tprimat {
namespace {

// How a child ends that does `work` with stdout and stderr on `path`.
int status_of_child(const char* path, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(path, O_WRONLY);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
    ::_exit(work());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Output, LosesNothingInSilence) {
  const int status = status_of_child("/dev/full", [] {
    write_stdout("lost\n");
    return flush_stdout() != nullptr && flush_stdout() != nullptr ? 7 : 0;  // the next flush still tells
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Output, OutlivesAStderrThatTakesNothing) {
  const int status = status_of_child("/dev/full", [] { return write_stderr("lost\n") ? 0 : 7; });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// Both on one file, as with 2>&1: a note stands between lines.
TEST(Output, NotesNeverStandWithinALine) {
  std::string path = (std::filesystem::temp_directory_path() / "tprimat-output-XXXXXX").string();
  ::close(::mkstemp(path.data()));
  const std::string line(50, 'x');
  status_of_child(path.c_str(), [&] {
    for (int i = 0; i < 3000; ++i) write_stdout(line + "\n");
    write_stderr("note\n");
    flush_stdout();
    return 0;
  });
  std::ifstream file(path);
  int lines = 0, notes = 0;
  for (std::string each; std::getline(file, each); each == "note" ? ++notes : ++lines)
    EXPECT_TRUE(each == "note" || each == line) << each;
  EXPECT_EQ(lines, 3000);
  EXPECT_EQ(notes, 1);
  std::filesystem::remove(path);
}

TEST(Output, ClosedStreamsKeepTheirNumbersAndFail) {
  const int status = status_of_child("/dev/null", [] {
    for (const int descriptor : {0, 1, 2}) ::close(descriptor);
    open_standard_streams();
    char byte = 0;
    const bool reads = ::read(STDIN_FILENO, &byte, 1) >= 0;
    write_stdout("lost");
    return !reads && flush_stdout() != nullptr && !write_stderr("lost") && ::open("/dev/null", O_RDONLY) > 2 ? 7 : 0;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Output, EndsByTheSignalOfAPipeThatNobodyReads) {
  const int status = status_of_child("/dev/null", [] {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return 1;
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    open_standard_streams();
    if (write_stderr("nobody reads this")) return 2;
    write_stdout("nor this");
    flush_stdout();
    return 3;
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
}

TEST(Output, WaitsForAPipeThatIsFullAndNonBlocking) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string much(1 << 20, 'x');
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    write_stdout(much);
    ::_exit(flush_stdout() == nullptr ? 0 : 1);
  }
  ::close(ends[1]);
  size_t count = 0;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = ::read(ends[0], bytes.data(), bytes.size())) > 0;) count += static_cast<size_t>(got);
  ::close(ends[0]);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(count, much.size());
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tprimat
