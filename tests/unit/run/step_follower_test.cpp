#include "run/step_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

TEST(StepFollower, ReadsAFileThatGrows) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("follower" + std::to_string(::getpid()))).string();
  std::filesystem::remove(path);
  StepFollower follower(path);
  EXPECT_FALSE(follower.read_new(1.0));
  const auto append = [&](const std::string& text) { std::ofstream(path, std::ios::app) << text; };
  append("{\"step\": 1, \"time_seconds\": 0.5, \"loss\": null}\n{\"step\": 2, \"time_");
  EXPECT_TRUE(follower.read_new(7.0));
  ASSERT_EQ(follower.steps().size(), 1u);
  EXPECT_TRUE(std::isnan(follower.steps()[0].loss.value()));
  EXPECT_EQ(follower.steps()[0].unix_time, 7.0);
  append("seconds\": 0.25, \"unix_time\": 3}\nnonsense\n{\"step\": 0, \"time_seconds\": 1}\n");
  EXPECT_TRUE(follower.read_new(8.0));
  ASSERT_EQ(follower.steps().size(), 2u);
  EXPECT_EQ(follower.steps()[1].unix_time, 3.0);
  EXPECT_EQ(follower.unreadable_lines(), 2);
  EXPECT_FALSE(follower.read_new(9.0));
  EXPECT_EQ(follower.damage(), "");
  std::ofstream(path, std::ios::trunc) << "{\"step\": 1, \"time_seconds\": 9}\n";  // the trainer began anew
  EXPECT_TRUE(follower.read_new(10.0));
  ASSERT_EQ(follower.steps().size(), 3u);
  EXPECT_EQ(follower.steps()[2].time_seconds, 9.0);
  EXPECT_EQ(follower.damage(), "the step record file was cut short after step 2; records read before that are kept");
  std::filesystem::remove(path);
}

TEST(StepFollower, ReadsOnWhenTheFileLosesItsName) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("nameless" + std::to_string(::getpid()))).string();
  std::ofstream file(path);
  file << "{\"step\": 1, \"time_seconds\": 1}\n" << std::flush;
  StepFollower follower(path);
  EXPECT_TRUE(follower.read_new(1.0));
  std::filesystem::remove(path);
  file << "{\"step\": 2, \"time_seconds\": 1}\n" << std::flush;
  EXPECT_TRUE(follower.read_new(2.0));
  EXPECT_EQ(follower.steps().size(), 2u);
  follower.read_rest(3.0);
  EXPECT_EQ(file_text(path), "{\"step\": 1, \"time_seconds\": 1}\n{\"step\": 2, \"time_seconds\": 1}\n");
  std::ofstream(path + ".new") << "{\"step\": 3, \"time_seconds\": 1}\n";
  std::filesystem::rename(path + ".new", path);
  EXPECT_FALSE(follower.read_new(3.0));
  EXPECT_TRUE(follower.read_new(3.0));
  EXPECT_EQ(follower.steps().size(), 3u);
  std::filesystem::remove(path);
}

TEST(StepFollower, GarbageIsCountedAndDoesNoHarm) {
  const std::string path = (std::filesystem::temp_directory_path() / ("garbage" + std::to_string(::getpid()))).string();
  std::ofstream file(path, std::ios::binary);
  file << "{\"step\": 1, \"time_seconds\": " << std::string(500'000, '[') << std::string(500'000, ']') << "}\n"
       << std::string(3'000'000, 'x') << '\n'
       << "{\"step\": 2, \"time_seconds\": 1e999}\n"
       << std::string("\0\xff\n", 3) << "{\"step\": 3, \"time_seconds\": 1}\n";
  file.close();
  StepFollower follower(path);
  EXPECT_TRUE(follower.read_new(1.0));
  ASSERT_EQ(follower.steps().size(), 1u);
  EXPECT_EQ(follower.steps()[0].step, 3);
  EXPECT_EQ(follower.unreadable_lines(), 4);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tprimat::suite
