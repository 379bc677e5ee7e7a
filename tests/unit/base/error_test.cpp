#include "base/error.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Error, PrintsPlaceSentenceAndRemedy) {
  EXPECT_EQ(to_string(Problem{"must be positive, got -1", "a.yaml:3:7", "write 1"}),
            "a.yaml:3:7: must be positive, got -1\n  write 1");
}

TEST(Error, IsOneLineWhateverAFileSays) {
  EXPECT_EQ(to_string(Problem{"unknown key 'a\nerror: b'", "x\033\n.yaml:1:1", "write c"}),
            "x\\x1b .yaml:1:1: unknown key 'a error: b'\n  write c");
}

TEST(Error, LeavesOutWhatIsEmpty) { EXPECT_EQ(to_string(Problem{"is wrong", "", ""}), "is wrong"); }

TEST(Error, HoldsAllProblemsOfAFile) {
  const Error error(std::vector<Problem>{{"one", "a", ""}, {"two", "b", ""}}, ExitStatus::work_failed);
  EXPECT_EQ(error.problems().size(), 2u);
  EXPECT_STREQ(error.what(), "a: one\nb: two");
  EXPECT_EQ(error.status(), ExitStatus::work_failed);
}

TEST(Error, IsAUsageErrorUnlessSaidOtherwise) { EXPECT_EQ(Error(Problem{"x", "", ""}).status(), ExitStatus::usage); }

TEST(ExitStatus, IsWhatTheDocumentationSays) {
  EXPECT_EQ(static_cast<int>(ExitStatus::done), 0);
  EXPECT_EQ(static_cast<int>(ExitStatus::usage), 2);
  EXPECT_EQ(static_cast<int>(ExitStatus::not_comparable), 3);
  EXPECT_EQ(static_cast<int>(ExitStatus::missing_component), 4);
  EXPECT_EQ(static_cast<int>(ExitStatus::gate_failed), 5);
  EXPECT_EQ(static_cast<int>(ExitStatus::inconclusive), 6);
  EXPECT_EQ(static_cast<int>(ExitStatus::interrupted), 130);
}

}  // namespace
}  // namespace tprimat
