#include "process/log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

class LogFileTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  fs::path folder_ = fs::temp_directory_path() / ("log_file_" + std::to_string(::getpid()));
  std::string path_ = (folder_ / "run.log").string();
};

TEST_F(LogFileTest, OneThatNobodyTouchesIsLeftAlone) {
  LogFile log(path_);
  log.write("one\n");
  const auto before = fs::last_write_time(path_);
  log.mend();
  EXPECT_EQ(fs::last_write_time(path_), before);
  EXPECT_EQ(log.damage(), "");
}

TEST_F(LogFileTest, ALinkOfItsNameIsReplacedAndNotFollowed) {
  fs::create_directories(folder_);
  const fs::path theirs = folder_ / "theirs";
  std::ofstream(theirs) << "precious";
  fs::create_symlink(theirs, path_);
  LogFile log(path_);
  log.write("ours\n");
  log.mend();
  EXPECT_EQ(fs::file_size(theirs), 8u);
  EXPECT_FALSE(fs::is_symlink(path_));
  EXPECT_EQ(text(), "ours\n");
}

// One that comes while we write gives way too.
TEST_F(LogFileTest, ALinkThatTakesItsPlaceGivesWay) {
  LogFile log(path_);
  log.write("ours\n");
  const fs::path theirs = folder_ / "theirs";
  fs::rename(path_, theirs);
  fs::create_symlink(theirs, path_);
  log.mend();
  log.write("more\n");
  EXPECT_FALSE(fs::is_symlink(path_));
  EXPECT_EQ(text(), "ours\nmore\n");
}

TEST_F(LogFileTest, APipeOfItsNameIsRefused) {
  fs::create_directories(folder_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THROW(LogFile{path_}, Error);
}

TEST_F(LogFileTest, ARemovedFolderComesBackWithAllOfIt) {
  LogFile log(path_);
  std::string all;
  for (int i = 0; i < 60; ++i) {
    const std::string piece = std::string(100'000, static_cast<char>('a' + i % 26)) + "\n";
    log.write(piece);
    all += piece;
  }
  fs::remove_all(folder_);
  log.write("after\n");
  log.mend();
  log.write("end\n");
  EXPECT_EQ(text(), all + "after\nend\n");
  EXPECT_NE(log.damage().find("removed or replaced"), std::string::npos);
}

TEST_F(LogFileTest, AnotherFileOfItsNameGivesWay) {
  LogFile log(path_);
  log.write("ours\n");
  fs::remove(path_);
  std::ofstream(path_) << "theirs\n";
  log.mend();
  EXPECT_EQ(text(), "ours\n");
}

TEST_F(LogFileTest, OneThatWasCutShortKeepsTheEndOfWhatItHeld) {
  LogFile log(path_);
  for (int i = 0; i < 100; ++i) log.write(std::to_string(1000 + i) + std::string(100'000, 'x') + "\n");
  fs::resize_file(path_, 10);
  log.mend();
  log.write("end\n");
  const std::string kept = text();
  EXPECT_TRUE(kept.starts_with("[tprimat: the log was cut short while it was written; the last "))
      << kept.substr(0, 99);
  EXPECT_TRUE(kept.ends_with("x\nend\n"));
  EXPECT_GT(kept.size(), 2'000'000u);
  EXPECT_LT(kept.size(), 5'000'000u);
  EXPECT_NE(kept.find("1099x"), std::string::npos);
}

TEST_F(LogFileTest, WhereNoneIsWantedNothingIsWritten) {
  LogFile log("");
  log.write("nothing\n");
  log.mend();
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(LogFileTest, AFullDiskIsASentence) {
  LogFile log("/dev/full");
  log.mend();  // a device is nothing to mend
  EXPECT_THROW(log.write("x"), Error);
}

}  // namespace
}  // namespace tprimat
