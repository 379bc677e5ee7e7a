// What stands in the directory while checkpoints are written, beside one another, without end, or not to the end.
#include "model_files/checkpoint_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/checkpoint_reader.h"
#include "unit/model_files/expect_error.h"
#include "unit/model_files/sample_checkpoint.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

std::vector<int64_t> steps_in(const fs::path& directory) {
  std::vector<int64_t> steps;
  for (const StepFolder& folder : list_step_folders(directory)) steps.push_back(folder.step);
  return steps;
}

TEST(CheckpointWriter, KeepsTheLastOnes) {
  const TemporaryFolder folder;
  for (int64_t step = 10; step <= 50; step += 10) test::write_small_checkpoint({folder.path(), step, 0, 1, 0, 3}, 1.0f);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{50, 40, 30}));
  test::write_small_checkpoint({folder.path(), 60, 0, 1, 0, 0}, 1.0f);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{60}));
}

TEST(CheckpointWriter, DoesNotCountDamagedOnesAndLeavesLaterOnesAlone) {
  const TemporaryFolder folder;
  for (const int64_t step : {10, 20, 30, 90}) test::write_small_checkpoint({folder.path(), step, 0, 1, 0, 9}, 1.0f);
  write_file_atomically(step_folder(folder.path(), 30) / rank_file_name(0, 1, 0), "cut");
  test::write_small_checkpoint({folder.path(), 40, 0, 1, 0, 2}, 1.0f);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{90, 40, 30, 20}));
}

TEST(CheckpointWriter, RemovesWhatDeadRunsLeft) {
  const TemporaryFolder folder;
  test::write_small_checkpoint({folder.path(), 10}, 1.0f);
  write_file_atomically(step_folder(folder.path(), 15) / rank_file_name(1, 2, 77), "half of a checkpoint");
  const std::string temporary = step_folder(folder.path(), 20) / "rank_00000.XyZ123.tmp";
  write_file_atomically(temporary, "dead");
  write_file_atomically(step_folder(folder.path(), 20) / rank_file_name(0, 1, 77), "dead");
  write_file_atomically(folder / "notes.txt", "mine");
  write_file_atomically(folder / "step_20/mine.txt", "not named as ours are");
  test::write_small_checkpoint({folder.path(), 20}, 1.0f);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{20, 10}));
  EXPECT_FALSE(fs::exists(temporary));
  EXPECT_EQ(std::distance(fs::directory_iterator(step_folder(folder.path(), 20)), fs::directory_iterator()), 2);
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
  EXPECT_TRUE(fs::exists(folder / "step_20/mine.txt"));
}

TEST(CheckpointWriter, NamesTheRankThatIsMissing) {
  const TemporaryFolder folder;
  test::write_small_checkpoint({folder.path(), 10}, 1.0f);
  CheckpointWriter writer({folder.path(), 20, 0, 3, 5, 2, 0.05});
  writer.start(Json::object());
  EXPECT_ERROR_WITH("rank 1 of 3 has not written", writer.wait());
  EXPECT_EQ(find_newest_checkpoint(folder.path()).step, 10);
}

TEST(CheckpointWriter, DoesNotTakeThePartOfADeadRunForItsOwn) {
  const TemporaryFolder folder;
  CheckpointWriter dead({folder.path(), 20, 1, 2, 111});
  dead.start(Json::object());
  dead.wait();
  CheckpointWriter writer({folder.path(), 20, 0, 2, 222, 2, 0.05});
  writer.start(Json::object());
  EXPECT_ERROR_WITH("rank 1 of 2", writer.wait());
}

TEST(CheckpointWriter, TwoRunsAtOnceDoNotSpoilEachOther) {
  const TemporaryFolder folder;
  const std::vector<float> values(5, 1.0f);
  CheckpointWriter first({folder.path(), 20, 0, 2, 111}), second({folder.path(), 20, 0, 1, 222});
  first.add(StateKind::weights, test::small_parameter(), 0, 5, values.data());
  first.start(Json::object());
  while (!fs::exists(step_folder(folder.path(), 20) / rank_file_name(0, 2, 111)))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  second.start(Json::object());
  EXPECT_ERROR_WITH("another run", second.wait());
  CheckpointWriter other_rank({folder.path(), 20, 1, 2, 111});
  other_rank.start(Json::object());
  other_rank.wait();
  first.wait();
  EXPECT_EQ(find_newest_checkpoint(folder.path()).step, 20);
}

TEST(CheckpointWriter, ManyRunsAtOnceLeaveASoundCheckpoint) {
  const TemporaryFolder folder;
  std::vector<std::jthread> threads;
  for (uint64_t run = 1; run <= 4; ++run)
    threads.emplace_back([&, run] {
      for (int64_t step = 1; step <= 10; ++step) try {
          test::write_small_checkpoint({folder.path(), step, 0, 1, run}, static_cast<float>(run));
        } catch (const Error&) {  // another run is at it
        }
    });
  threads.clear();
  const FoundCheckpoint found = find_newest_checkpoint(folder.path());
  EXPECT_TRUE(found.folder);
}

TEST(CheckpointWriter, GivesUpWhenNobodyWaits) {
  const TemporaryFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  {
    CheckpointWriter writer({folder.path(), 20, 0, 2});
    writer.start(Json::object());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// A limit on the size of files stands for a full disk: write() fails part of the way.
TEST(CheckpointWriter, AFullDiskIsSaidAndTheEarlierCheckpointStays) {
  const TemporaryFolder folder;
  test::write_small_checkpoint({folder.path(), 10}, 1.0f);
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  Parameter large;
  large.name = "embedding.weight";
  large.shard = Shard::whole(1000, 10);
  CheckpointWriter writer({folder.path(), 20});
  writer.add(StateKind::weights, large, 0, 10000, std::vector<float>(10000).data());
  writer.start(Json::object());
  const std::string said = test::error_of([&] { writer.wait(); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(said.find("the checkpoint of step 20 was not written: cannot write"), std::string::npos) << said;
  EXPECT_NE(said.find("earlier checkpoints are untouched"), std::string::npos) << said;
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{10}));
  EXPECT_EQ(find_newest_checkpoint(folder.path()).step, 10);
}

[[noreturn]] void write_without_end(const fs::path& directory) {
  Parameter large;
  large.name = "embedding.weight";
  large.shard = Shard::whole(500, 1000);
  for (int64_t step = 2;; ++step) {
    CheckpointWriter writer({directory, step, 0, 1, static_cast<uint64_t>(::getpid())});
    writer.add(StateKind::weights, large, 0, 500000, std::vector<float>(500000, static_cast<float>(step)).data());
    writer.start(Json::object());
    writer.wait();
  }
}

TEST(CheckpointWriter, KilledAtAnyMomentItLeavesASoundCheckpoint) {
  const TemporaryFolder folder;
  test::write_small_checkpoint({folder.path(), 1}, 1.0f);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    if (child == 0) write_without_end(folder.path());
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 7919 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const FoundCheckpoint found = find_newest_checkpoint(folder.path());
    ASSERT_TRUE(found.folder) << "round " << round;
    for (const std::string& note : found.notes) EXPECT_NE(note.find("never completed"), std::string::npos) << note;
    EXPECT_GE(found.step, 1);
  }
}

}  // namespace
}  // namespace tprimat::engine
