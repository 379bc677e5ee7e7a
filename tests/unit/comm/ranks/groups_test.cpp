#include <gtest/gtest.h>

#include "comm/rank_groups.h"
#include "world.h"

namespace tprimat::engine {
namespace {

std::vector<int32_t> members_of(Communicator& group) {
  std::vector<int32_t> members(static_cast<size_t>(group.size()));
  const int32_t own = world().rank();
  group.all_gather(&own, 1, members.data());
  return members;
}

TEST(World, HasTheRanksThatTheLauncherStarted) {
  const LauncherPlace place = launcher_place();
  EXPECT_EQ(world().rank(), place.rank);
  EXPECT_EQ(world().size(), place.size);
  EXPECT_EQ(place.local_size, place.size);
  EXPECT_EQ(place.local_rank, place.rank);
}

TEST(Split, OrdersTheRanksByTheirKeys) {
  const int rank = world().rank(), ranks = world().size();
  const auto backwards = world().split(0, -rank);
  EXPECT_EQ(backwards->size(), ranks);
  EXPECT_EQ(backwards->rank(), ranks - 1 - rank);
  const auto halves = world().split(rank % 2, rank);
  for (const int32_t member : members_of(*halves)) EXPECT_EQ(member % 2, rank % 2);
  const auto alone = world().split(rank, 0);
  EXPECT_EQ(members_of(*alone), std::vector<int32_t>{rank});
}

void expect_groups_of(const TrainSpec& spec) {
  const RankGroups groups = make_rank_groups(spec, world().split(0, world().rank()));
  const GroupColors own = group_colors(spec, world().rank());
  const auto expect = [&](Communicator& group, int GroupColors::*kind) {
    std::vector<int32_t> expected;
    for (int rank = 0; rank < world().size(); ++rank)
      if (group_colors(spec, rank).*kind == own.*kind) expected.push_back(rank);
    EXPECT_EQ(members_of(group), expected);
  };
  expect(*groups.tensor, &GroupColors::tensor);
  expect(*groups.context, &GroupColors::context);
  expect(*groups.pipeline, &GroupColors::pipeline);
  expect(*groups.data, &GroupColors::data);
  expect(*groups.model, &GroupColors::model);
  expect(*groups.embedding, &GroupColors::embedding);
  expect(*groups.key_value, &GroupColors::key_value);
}

// Every layout that this number of ranks allows: the groups hold the ranks that the arithmetic says.
TEST(MakeRankGroups, HoldTheRanksOfTheirColors) {
  const int ranks = world().size();
  for (int tensor = 1; tensor <= ranks; ++tensor)
    for (int pipeline = 1; pipeline <= ranks; ++pipeline)
      for (int context = 1; context <= ranks; ++context) {
        if (ranks % (tensor * pipeline * context) != 0) continue;
        TrainSpec spec;
        spec.model.num_key_value_heads = 2;
        spec.model.tied_embeddings = true;
        spec.parallel.tensor = tensor;
        spec.parallel.pipeline = pipeline;
        spec.parallel.context = context;
        spec.parallel.data = ranks / (tensor * pipeline * context);
        expect_groups_of(spec);
      }
}

}  // namespace
}  // namespace tprimat::engine
