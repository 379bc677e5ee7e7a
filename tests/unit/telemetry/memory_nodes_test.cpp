#include "telemetry/memory_nodes.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/temporary_folder.h"

namespace tprimat {
namespace {

// A machine with `all` processors.
class MemoryNodesTest : public testing::Test {
 protected:
  void describe(const std::string& all, const std::string& nodes, const std::vector<std::string>& processors,
                const std::string& online = "0-63") {
    write("proc/1/status", "Name:\tinit\nCpus_allowed_list:\t" + all + "\nMems_allowed:\t1");
    for (size_t i = 0; i < processors.size(); ++i)
      write("sys/devices/system/node/node" + std::to_string(i) + "/cpulist", processors[i]);
    write("sys/devices/system/node/online", nodes);
    write("sys/devices/system/cpu/online", online);
  }
  std::vector<MemoryNode> read(const std::vector<int>& allowed) const {
    return usable_memory_nodes(folder_.path(), allowed);
  }

 private:
  void write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  test::TemporaryFolder folder_;
};

TEST_F(MemoryNodesTest, ADomainHasTheProcessorsThatThisProcessMayUse) {
  describe("0-4,8", "0-1", {"0-3,8-11", "4-7,12-15"});  // a container's
  EXPECT_EQ(read({0, 1, 2, 3, 4, 8}), (std::vector<MemoryNode>{{0, {0, 1, 2, 3, 8}}, {1, {4}}}));
}

TEST_F(MemoryNodesTest, ALaunchersChoiceStands) {
  describe("0-7", "0-3", {"0-1", "2-3", "4-5", "6-7"});
  EXPECT_EQ(read({0, 1, 2, 3, 4, 5, 6, 7}).size(), 4u);
  EXPECT_TRUE(read({4, 5, 6, 7}).empty());  // rank 1 of 2 of Slurm
}

TEST_F(MemoryNodesTest, WhatIsOfflineIsNotMissing) {
  describe("0-7", "0-1", {"0-1", "4-5"}, "0-1,4-5");
  EXPECT_EQ(read({0, 1, 4, 5}).size(), 2u);
  EXPECT_TRUE(read({0, 1, 4, 6}).empty());  // as many, but others
}

TEST_F(MemoryNodesTest, ADomainWithoutProcessorsIsNone) {
  describe("0-3", "0-2", {"0-1", "", "2-3"});
  EXPECT_EQ(read({0, 1, 2, 3}), (std::vector<MemoryNode>{{0, {0, 1}}, {2, {2, 3}}}));
}

TEST_F(MemoryNodesTest, WhatTheKernelDoesNotSayIsNotGuessed) {
  EXPECT_TRUE(read({0, 1}).empty());
  describe("0-3", "0-1", {"0-1", "2-three"});
  EXPECT_TRUE(read({0, 1, 2, 3}).empty());
  describe("0-3", "all", {"0-1", "2-3"});
  EXPECT_TRUE(read({0, 1, 2, 3}).empty());
}

}  // namespace
}  // namespace tprimat
