#include "device/placement.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

// A machine with `all` processors.
class PlacementTest : public testing::Test {
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

TEST_F(PlacementTest, ADomainHasTheProcessorsThatThisProcessMayUse) {
  describe("0-4,8", "0-1", {"0-3,8-11", "4-7,12-15"});  // a container's
  EXPECT_EQ(read({0, 1, 2, 3, 4, 8}), (std::vector<MemoryNode>{{0, {0, 1, 2, 3, 8}}, {1, {4}}}));
}

TEST_F(PlacementTest, ALaunchersChoiceStands) {
  describe("0-7", "0-3", {"0-1", "2-3", "4-5", "6-7"});
  EXPECT_EQ(read({0, 1, 2, 3, 4, 5, 6, 7}).size(), 4u);
  EXPECT_TRUE(read({4, 5, 6, 7}).empty());  // rank 1 of 2 of Slurm
}

TEST_F(PlacementTest, WhatIsOfflineIsNotMissing) {
  describe("0-7", "0-1", {"0-1", "4-5"}, "0-1,4-5");
  EXPECT_EQ(read({0, 1, 4, 5}).size(), 2u);
  EXPECT_TRUE(read({0, 1, 4, 6}).empty());  // as many, but others
}

TEST_F(PlacementTest, ADomainWithoutProcessorsIsNone) {
  describe("0-3", "0-2", {"0-1", "", "2-3"});
  EXPECT_EQ(read({0, 1, 2, 3}), (std::vector<MemoryNode>{{0, {0, 1}}, {2, {2, 3}}}));
}

TEST_F(PlacementTest, WhatTheKernelDoesNotSayIsNotGuessed) {
  EXPECT_TRUE(read({0, 1}).empty());
  describe("0-3", "0-1", {"0-1", "2-three"});
  EXPECT_TRUE(read({0, 1, 2, 3}).empty());
  describe("0-3", "all", {"0-1", "2-3"});
  EXPECT_TRUE(read({0, 1, 2, 3}).empty());
}

using Numbers = std::vector<int>;

// Domains of two processors each.
Numbers numbers_of_rank(int nodes, const LocalRank& local) {
  std::vector<MemoryNode> all;
  for (int number = 0; number < nodes; ++number) all.push_back({number, {2 * number, 2 * number + 1}});
  Numbers numbers;
  for (const MemoryNode& node : nodes_of_rank(all, local)) numbers.push_back(node.number);
  return numbers;
}

TEST(NodesOfRank, NeighbouringRanksShareADomainAndFewerRanksTakeSeveral) {
  EXPECT_EQ(numbers_of_rank(2, {0, 2, 2}), Numbers({0}));
  EXPECT_EQ(numbers_of_rank(2, {1, 2, 2}), Numbers({1}));
  EXPECT_EQ(numbers_of_rank(2, {1, 4, 1}), Numbers({0}));
  EXPECT_EQ(numbers_of_rank(2, {2, 4, 1}), Numbers({1}));
  EXPECT_EQ(numbers_of_rank(4, {1, 2, 4}), Numbers({2, 3}));
  EXPECT_EQ(numbers_of_rank(2, {0, 1, 4}), Numbers({0, 1}));
}

TEST(NodesOfRank, RanksThatDomainsDoNotDivideTakeAll) {
  for (int64_t rank = 0; rank < 3; ++rank) EXPECT_EQ(numbers_of_rank(2, {rank, 3, 1}), Numbers({0, 1}));
}

TEST(NodesOfRank, ThreadsAreNotCrowdedIntoADomain) {
  EXPECT_EQ(numbers_of_rank(2, {1, 2, 3}), Numbers({0, 1}));
  EXPECT_EQ(numbers_of_rank(2, {1, 4, 2}), Numbers({0, 1}));
  const std::vector<MemoryNode> uneven = {{0, {0, 1, 2}}, {1, {3}}};
  EXPECT_EQ(nodes_of_rank(uneven, {0, 2, 2}), uneven);
}

}  // namespace
}  // namespace tprimat::engine
