#include "device/placement.h"

#include <gtest/gtest.h>

namespace tprimat::engine {
namespace {

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
