#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

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

TEST_F(Files, ALinkInThePlaceOfAFileIsNotFollowed) {
  write_file_atomically(folder_ / "theirs", "precious");
  fs::create_symlink(folder_ / "theirs", folder_ / "link");
  EXPECT_THROW(LineWriter(folder_ / "link"), Error);
  write_file_atomically(folder_ / "link", "ours");
  EXPECT_EQ(read_file(folder_ / "theirs"), "precious");
  EXPECT_EQ(read_file(folder_ / "link"), "ours");
  EXPECT_FALSE(fs::is_symlink(folder_ / "link"));
}

TEST_F(Files, ADeviceOrAPipeDoesNotBecomeAFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(write_file_atomically(folder_ / "pipe", "x"), Error);
  EXPECT_THROW(LineWriter(folder_ / "pipe"), Error);  // and does not wait for a reader
  EXPECT_THROW(write_file_atomically("/dev/null", "x"), Error);
  EXPECT_THROW(write_file_atomically("/dev/stdout", "x"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, TheObstacleOfAFolderIsNamed) {
  write_file_atomically(folder_ / "file", "x");
  fs::create_symlink("nowhere", folder_ / "dangling");
  fs::create_symlink("file", folder_ / "to_file");
  const auto refusal = [&](const char* name) -> std::string {
    try {
      ensure_folder(folder_ / name);
    } catch (const Error& error) {
      return error.problems().front().what;
    }
    return "";
  };
  EXPECT_TRUE(refusal("file/below").ends_with("/file is a file")) << refusal("file/below");
  EXPECT_TRUE(refusal("dangling").ends_with("/dangling is a link to nowhere, which does not exist"));
  EXPECT_TRUE(refusal("to_file/below").ends_with("/to_file is a link to file, which is a file"));
  EXPECT_EQ(refusal("new/below"), "");
  EXPECT_TRUE(fs::is_directory(folder_ / "new/below"));
}

TEST_F(Files, ANamedPipeWithoutAWriterIsASentence) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  try {
    read_file(folder_ / "pipe");
    FAIL() << "a pipe that nobody writes to was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nobody writes"), std::string::npos);
  }
}

// Also one that comes late, that pauses, or that has ended by the time we look.
TEST_F(Files, WhatComesThroughAPipeIsRead) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::ofstream pipe(folder_ / "pipe");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    pipe << "one\n" << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    pipe << "two\n";
  });
  EXPECT_EQ(read_file(folder_ / "pipe"), "one\ntwo\n");
  writer.join();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "three", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "three");
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "");
  ::close(ends[0]);
}

TEST_F(Files, ADeviceIsNotReadForEver) {
  EXPECT_THROW(read_file("/dev/zero"), Error);
  EXPECT_EQ(read_file("/dev/null"), "");
}

}  // namespace
}  // namespace tprimat
