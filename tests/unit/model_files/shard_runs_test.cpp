#include "model_files/checkpoint_reader.h"

#include <gtest/gtest.h>

namespace tprimat::engine {
namespace {

// Each value one by one, by the definition of a shard.
void expect_definition(const Shard& shard) {
  for (int64_t begin = 0; begin <= shard.count(); ++begin)
    for (int64_t end = begin; end <= shard.count(); ++end) {
      int64_t next = begin;
      for (const ShardRun& run : shard_runs(shard, begin, end)) {
        EXPECT_EQ(run.local, next);
        ASSERT_GT(run.count, 0);
        for (int64_t i = 0; i < run.count; ++i) EXPECT_EQ(run.whole + i, shard.whole_index(run.local + i));
        next += run.count;
      }
      EXPECT_EQ(next, end);
    }
}

TEST(ShardRuns, AreTheShardPieceByPiece) {
  expect_definition(Shard::whole(4, 3));
  expect_definition({6, 5, {{1, 2}, {4, 2}}, 0, 5});
  expect_definition({6, 5, {{0, 2}, {3, 3}}, 2, 3});
  expect_definition({7, 1, {{5, 2}, {0, 3}}, 0, 1});
  expect_definition({3, 4, {{0, 3}}, 3, 1});
}

TEST(ShardRuns, JoinWholeRows) {
  EXPECT_EQ(shard_runs(Shard::whole(1000, 1000), 0, 1000000), (std::vector<ShardRun>{{0, 0, 1000000}}));
  EXPECT_EQ(shard_runs({10, 4, {{2, 3}, {5, 2}}, 0, 4}, 2, 18), (std::vector<ShardRun>{{10, 2, 16}}));
  EXPECT_EQ(shard_runs({100, 8, {{10, 90}}, 4, 4}, 0, 360).size(), 90u);
}

}  // namespace
}  // namespace tprimat::engine
