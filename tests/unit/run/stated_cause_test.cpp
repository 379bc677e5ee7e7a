#include "run/stated_cause.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace tprimat::suite {
namespace {

std::optional<logs::EndCause> read(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / ("cause " + std::to_string(::getpid()));
  write_file_atomically(path, text);
  const auto cause = read_stated_cause(path.string());
  std::filesystem::remove(path);
  return cause;
}

TEST(StatedCause, HasAKindAndASentence) {
  const auto cause = read("host_out_of_memory the pod of node 1 was killed\n");
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, FailureKind::host_out_of_memory);
  EXPECT_EQ(cause->sentence, "the pod of node 1 was killed");
  EXPECT_EQ(read("nonsense a b")->kind, FailureKind::error);
}

TEST(StatedCause, OddFilesAreNone) {
  EXPECT_FALSE(read_stated_cause(""));
  EXPECT_FALSE(read_stated_cause("/nowhere/cause.txt"));
  EXPECT_FALSE(read_stated_cause("/"));
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("error\n"));
  EXPECT_FALSE(read("error"));
  EXPECT_EQ(read("error a\x1b[2Jb\n")->sentence.find('\x1b'), std::string::npos);
  EXPECT_EQ(read("error " + std::string(100000, 'x'))->sentence.size(), 1023u);
}

}  // namespace
}  // namespace tprimat::suite
