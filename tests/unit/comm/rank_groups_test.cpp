#include "comm/rank_groups.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"

namespace tprimat::engine {
namespace {

using Groups = std::vector<std::vector<int>>;  // ranks of each group, in the order of their lowest rank

TrainSpec make_spec(int64_t tensor, int64_t context, int64_t data, int64_t pipeline) {
  TrainSpec spec;
  spec.model.num_attention_heads = 8;
  spec.model.num_key_value_heads = 2;
  spec.parallel.tensor = tensor;
  spec.parallel.context = context;
  spec.parallel.data = data;
  spec.parallel.pipeline = pipeline;
  return spec;
}

Groups groups_of(const TrainSpec& spec, int GroupColors::*kind) {
  std::map<int, std::vector<int>> by_color;
  for (int rank = 0; rank < spec.parallel.ranks(); ++rank) by_color[group_colors(spec, rank).*kind].push_back(rank);
  Groups groups;
  for (const auto& [color, ranks] : by_color) {
    EXPECT_EQ(color, ranks.front());
    groups.push_back(ranks);
  }
  return groups;
}

// The example in the documentation of Megatron-LM's initialize_model_parallel: 16 GPUs, TP 2, PP 4.
TEST(GroupColors, AreThoseOfMegatronsOwnExample) {
  const TrainSpec spec = make_spec(2, 1, 2, 4);
  EXPECT_EQ(groups_of(spec, &GroupColors::data),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_of(spec, &GroupColors::tensor),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(groups_of(spec, &GroupColors::pipeline),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

// Lists made by Megatron Core's RankGenerator(order="tp-cp-ep-dp-pp"): get_ranks of tp, cp, pp, dp-cp and tp-pp.
struct MegatronCase {
  int64_t tensor, context, data, pipeline;
  Groups tensor_groups, context_groups, pipeline_groups, data_groups, model_groups;
};
const MegatronCase k_megatron_cases[] = {
#include "megatron_groups.inc"
};

TEST(GroupColors, AreThoseOfMegatron) {
  for (const MegatronCase& each : k_megatron_cases) {
    SCOPED_TRACE(testing::Message() << "TP" << each.tensor << " CP" << each.context << " DP" << each.data << " PP"
                                    << each.pipeline);
    const TrainSpec spec = make_spec(each.tensor, each.context, each.data, each.pipeline);
    EXPECT_EQ(groups_of(spec, &GroupColors::tensor), each.tensor_groups);
    EXPECT_EQ(groups_of(spec, &GroupColors::context), each.context_groups);
    EXPECT_EQ(groups_of(spec, &GroupColors::pipeline), each.pipeline_groups);
    EXPECT_EQ(groups_of(spec, &GroupColors::data), each.data_groups);
    EXPECT_EQ(groups_of(spec, &GroupColors::model), each.model_groups);
  }
}

TEST(RankPlace, IsTheInverseOfRankAt) {
  for (const TrainSpec& spec :
       {make_spec(1, 1, 1, 1), make_spec(2, 3, 4, 5), make_spec(4, 1, 1, 2), make_spec(1, 2, 3, 1)})
    for (int rank = 0; rank < spec.parallel.ranks(); ++rank) {
      const RankPlace place = rank_place(spec.parallel, rank);
      EXPECT_EQ(rank_at(spec.parallel, place), rank);
      EXPECT_LT(place.tensor, spec.parallel.tensor);
      EXPECT_LT(place.pipeline, spec.parallel.pipeline);
    }
}

TEST(GroupColors, TheTwoCopiesOfATiedEmbeddingShareAGroup) {
  TrainSpec spec = make_spec(2, 1, 1, 3);
  EXPECT_EQ(groups_of(spec, &GroupColors::embedding), (Groups{{0}, {1}, {2}, {3}, {4}, {5}}));
  spec.model.tied_embeddings = true;
  EXPECT_EQ(groups_of(spec, &GroupColors::embedding), (Groups{{0, 4}, {1, 5}, {2}, {3}}));
  spec.parallel.pipeline = 1;
  EXPECT_EQ(groups_of(spec, &GroupColors::embedding), (Groups{{0}, {1}}));
}

TEST(GroupColors, TensorRanksShareAKeyValueHeadWhenThereAreMoreRanks) {
  EXPECT_EQ(groups_of(make_spec(8, 1, 1, 1), &GroupColors::key_value), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of(make_spec(4, 1, 2, 1), &GroupColors::key_value), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_of(make_spec(2, 1, 1, 2), &GroupColors::key_value), (Groups{{0}, {1}, {2}, {3}}));
}

TEST(MakeRankGroups, ALayoutForMoreRanksThanThereAreIsRefused) {
  try {
    make_rank_groups(make_spec(2, 1, 3, 1), make_self_communicator());
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("mpirun -n 6"), std::string::npos) << error.what();
  }
}

TEST(MakeRankGroups, OneRankIsAloneInEveryGroup) {
  const RankGroups groups = make_rank_groups(make_spec(1, 1, 1, 1), make_self_communicator());
  for (const auto* group : {&groups.world, &groups.tensor, &groups.context, &groups.pipeline, &groups.data,
                            &groups.model, &groups.embedding, &groups.key_value}) {
    ASSERT_NE(*group, nullptr);
    EXPECT_EQ((*group)->size(), 1);
  }
}

}  // namespace
}  // namespace tprimat::engine
