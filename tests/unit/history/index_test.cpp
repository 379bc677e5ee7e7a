#include "history/index.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "history/database.h"
#include "result/result_file.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

class Index : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tprimat_history_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (int i = 0; i < 3; ++i) add("run_" + std::to_string(i) + ".json", 1.0 + 0.1 * i);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Long ago, so that the file's time tells a change from none.
  void add(const std::string& name, double step_time, int hours_ago = 10) {
    const RunResult result = sample_run(name, Platform::nvd, Framework::nemo, step_time).result;
    write_run_result(folder_ / name, result, Survives::kill);
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  double rate(const IndexedFolder& index, size_t at) const {
    return index.files.at(at).entry.figures.at("tokens_per_second").value;
  }
  fs::path index_path() const { return folder_ / k_index_name; }

  fs::path folder_;
};

TEST_F(Index, ReadsEachFileOnce) {
  const IndexedFolder first = index_folder(folder_), second = index_folder(folder_);
  EXPECT_EQ(first.files_read, 3u);
  EXPECT_EQ(second.files_read, 0u);
  ASSERT_EQ(second.files.size(), 3u);
  EXPECT_EQ(second.index_path, index_path().string());
  EXPECT_EQ(second.note, "");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first.files[i].path, "run_" + std::to_string(i) + ".json");
    EXPECT_EQ(first.files[i].entry.series, second.files[i].entry.series);
    EXPECT_DOUBLE_EQ(rate(first, i), rate(second, i));
    EXPECT_DOUBLE_EQ(first.files[i].unix_time, 1767225600) << "2026-01-01, as the result says";
  }
}

TEST_F(Index, NoticesWhatIsNewChangedAndGone) {
  index_folder(folder_);
  fs::remove(folder_ / "run_0.json");
  add("run_1.json", 2.0, 5);
  fs::create_directories(folder_ / "night");
  add("night/run_3.json", 3.0);
  const IndexedFolder index = index_folder(folder_);
  EXPECT_EQ(index.files_read, 2u);
  EXPECT_EQ(index.files_gone, 1u);
  ASSERT_EQ(index.files.size(), 3u);
  EXPECT_EQ(index.files[0].path, "night/run_3.json");
  EXPECT_NEAR(rate(index, 1), 64 * 2048 / 2.0, 100);
}

TEST_F(Index, AChangeWithinATickOfTheClockIsSeen) {
  add("run_0.json", 1.0, 0);
  const auto moment = fs::last_write_time(folder_ / "run_0.json");
  index_folder(folder_);
  std::string text = read_file(folder_ / "run_0.json");
  text.replace(text.find("\"complete\""), 10, "\"invalid\" ");
  std::ofstream(folder_ / "run_0.json") << text;
  fs::last_write_time(folder_ / "run_0.json", moment);
  EXPECT_EQ(index_folder(folder_).files[0].entry.status, RunStatus::invalid);
}

TEST_F(Index, WhatIsNoResultIsNamedAndReadOnce) {
  std::ofstream(folder_ / "notes.json") << "{}";
  fs::last_write_time(folder_ / "notes.json", fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (const size_t read : {4u, 0u}) {
    const IndexedFolder index = index_folder(folder_);
    EXPECT_EQ(index.files_read, read);
    ASSERT_EQ(index.skipped.size(), 1u);
    EXPECT_EQ(index.skipped[0].path, "notes.json");
    EXPECT_NE(index.skipped[0].reason.find("is not a benchmark result"), std::string::npos);
  }
}

TEST_F(Index, ADamagedOneIsBuiltAgain) {
  for (const std::string& damage : {std::string("no database at all, but text of some length that stands here"),
                                    std::string(4096, '\0'), std::string("SQLite format 3\0 and then rubbish", 33)}) {
    index_folder(folder_);
    std::ofstream(index_path(), std::ios::binary) << damage;
    const IndexedFolder index = index_folder(folder_);
    EXPECT_EQ(index.files_read, 3u);
    EXPECT_EQ(index.files.size(), 3u);
    EXPECT_NE(index.note.find("damaged"), std::string::npos) << index.note;
    EXPECT_EQ(index_folder(folder_).files_read, 0u);
  }
}

TEST_F(Index, EveryPageMayBeDamaged) {
  for (int i = 3; i < 40; ++i) add("run_" + std::to_string(i) + ".json", 1.0 + 0.01 * i);
  index_folder(folder_);
  const std::string whole = read_file(index_path());
  for (size_t at = 0; at < whole.size(); at += 1777) {
    std::string damaged = whole;
    for (size_t i = at; i < std::min(whole.size(), at + 600); ++i) damaged[i] = static_cast<char>(0xa5);
    std::ofstream(index_path(), std::ios::binary) << damaged;
    const IndexedFolder index = index_folder(folder_);
    EXPECT_EQ(index.files.size(), 40u) << "damage at " << at;
  }
}

TEST_F(Index, OneOfAnotherVersionIsBuiltAgain) {
  index_folder(folder_);
  Database(index_path().string()).run("UPDATE about SET made_by = '0 of yore'");
  const IndexedFolder index = index_folder(folder_);
  EXPECT_EQ(index.files_read, 3u);
  EXPECT_NE(index.note.find("another version"), std::string::npos);
}

TEST_F(Index, SeveralProcessesAtOnceSeeTheSame) {
  for (int i = 3; i < 30; ++i) add("run_" + std::to_string(i) + ".json", 1.0 + 0.01 * i);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (int k = 0; k < 5; ++k) {
        if (i == 0 && k % 2 == 1) std::ofstream(index_path(), std::ios::binary) << "damage";
        good = good && index_folder(folder_).files.size() == 30;
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(index_folder(folder_).files.size(), 30u);
}

TEST_F(Index, AFolderThatIsNoneIsAnError) {
  EXPECT_THROW(index_folder(folder_ / "nowhere"), Error);
  EXPECT_THROW(index_folder(folder_ / "run_0.json"), Error);
}

}  // namespace
}  // namespace tprimat::results
