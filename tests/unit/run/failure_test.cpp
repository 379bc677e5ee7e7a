#include "run/failure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tprimat::suite {
namespace {

constexpr ExitReason k_exit_one{ExitReason::Kind::exited, 1};

std::string sentence_of(const ExitReason& exit, const std::string& log) { return explain_failure(exit, log).sentence; }

TEST(Failure, NamesTheCauseBehindAnExitStatus) {
  EXPECT_EQ(sentence_of(k_exit_one, ""), "exit status 1, with no output");
  EXPECT_EQ(sentence_of(k_exit_one, "error: loss of step 3 is not finite\nbye\n"),
            "NaN loss: error: loss of step 3 is not finite");
  const std::string norm = "error: the gradient norm is not finite at step 7: it is NaN\n";
  EXPECT_EQ(explain_failure(k_exit_one, norm).kind, FailureKind::nan_loss);
  EXPECT_EQ(explain_failure(k_exit_one, "error: the loss is NaN at step 7\n").kind, FailureKind::nan_loss);
  EXPECT_EQ(sentence_of(k_exit_one, "ValueError: bad\n  cleaning up  \n\n"), "exit status 1: ValueError: bad");
  EXPECT_EQ(sentence_of(k_exit_one, "something\nerror 7 of the cleaner\n"), "exit status 1: error 7 of the cleaner");
  EXPECT_EQ(sentence_of(k_exit_one, "terminate called after\n  what():  std::bad_alloc\n"),
            "out of host memory: what():  std::bad_alloc");
  EXPECT_EQ(sentence_of({ExitReason::Kind::signalled, 11}, "a last word\n"), "killed by signal 11 (SIGSEGV)");
}

TEST(Failure, OfATrainingThatWasStoppedIsTheStop) {
  const logs::EndCause cause =
      explain_failure({ExitReason::Kind::timed_out, 0, 10.0}, "SignalException: got signal: 15\n");
  EXPECT_EQ(cause.kind, FailureKind::time_limit);
  EXPECT_EQ(cause.sentence, "stopped after its time limit of 10.00 s");
}

TEST(Failure, QuotesBinaryAndLongLinesSafely) {
  const std::string text = sentence_of(k_exit_one, "error \x1b[31m\xff" + std::string(5000, 'x') + "\n");
  EXPECT_LT(text.size(), 300u);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
}

TEST(Failure, ReadsTheEndOfALogOnly) {
  const std::string path = (std::filesystem::temp_directory_path() / ("log_end" + std::to_string(::getpid()))).string();
  std::ofstream(path) << "first\n" << std::string(9'000'000, 'x') << "\nlast";
  EXPECT_EQ(read_log_end(path), "last\n");
  EXPECT_EQ(read_log_end(path, 6), "first\n");
  EXPECT_EQ(read_log_end(path, 0), "");
  EXPECT_EQ(read_log_end("/no/such/log"), "");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tprimat::suite
