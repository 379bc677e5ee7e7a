#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tprimat_files_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t count_entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(Files, ReadsBackWhatWasWritten) {
  const std::string content("line\n\0binary\xff", 13);
  write_file_atomically(folder_ / "a", content);
  EXPECT_EQ(read_file(folder_ / "a"), content);
}

TEST_F(Files, AnEmptyFileIsEmpty) {
  write_file_atomically(folder_ / "a", "");
  EXPECT_EQ(read_file(folder_ / "a"), "");
}

TEST_F(Files, ReplacesAndLeavesNothingBehind) {
  write_file_atomically(folder_ / "a", "old");
  write_file_atomically(folder_ / "a", "new");
  EXPECT_EQ(read_file(folder_ / "a"), "new");
  EXPECT_EQ(count_entries(), 1u);
}

TEST_F(Files, CreatesMissingFolders) {
  write_file_atomically(folder_ / "b" / "c" / "d", "x");
  EXPECT_EQ(read_file(folder_ / "b" / "c" / "d"), "x");
}

TEST_F(Files, OthersMayReadTheResult) {
  write_file_atomically(folder_ / "a", "x");
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
}

TEST_F(Files, AFolderInTheWayKeepsItsContent) {
  fs::create_directory(folder_ / "a");
  write_file_atomically(folder_ / "a" / "inside", "x");
  EXPECT_THROW(write_file_atomically(folder_ / "a", "y"), Error);
  EXPECT_EQ(read_file(folder_ / "a" / "inside"), "x");
  EXPECT_EQ(count_entries(), 1u);
}

TEST_F(Files, NamesTheFileThatIsMissing) {
  try {
    read_file(folder_ / "absent");
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.problems()[0].where, (folder_ / "absent").string());
    EXPECT_EQ(error.status(), ExitStatus::usage);
  }
}

TEST_F(Files, AFolderIsNoFile) { EXPECT_THROW(read_file(folder_), Error); }

TEST_F(Files, LineWriterWritesAtOnce) {
  LineWriter writer(folder_ / "log" / "steps.jsonl");
  writer.write_line("one");
  EXPECT_EQ(read_file(folder_ / "log" / "steps.jsonl"), "one\n");
  writer.write_line("two");
  EXPECT_EQ(read_file(folder_ / "log" / "steps.jsonl"), "one\ntwo\n");
}

TEST_F(Files, LineWriterStartsAnew) {
  write_file_atomically(folder_ / "a", "old\n");
  LineWriter writer(folder_ / "a");
  EXPECT_EQ(read_file(folder_ / "a"), "");
}

}  // namespace
}  // namespace tprimat
