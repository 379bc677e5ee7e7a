#include "spec/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "spec/flop_breakdown.h"
#include "spec/train_spec.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

ModelSpec shape_of(std::string_view name) {
  const auto found = find_counted_model(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(KnownModel{}).spec;
}

bool mentions(const std::vector<Problem>& problems, std::string_view text) {
  return std::ranges::any_of(problems, [&](const Problem& each) { return each.what.find(text) != std::string::npos; });
}

TEST(Experts, FirstLayersAndThoseBetweenAreDense) {
  const Experts each{.count = 4, .per_token = 1, .ffn_hidden_size = 8};
  Experts later = each, alternate = each;
  later.first_dense_layers = 3;
  alternate.layer_interval = 2;
  EXPECT_EQ(each.layers(48), 48);
  EXPECT_EQ(later.layers(61), 58);
  EXPECT_EQ(alternate.layers(48), 24);
}

TEST(Experts, NoLayersFollowFromAnImpossibleShape) {
  const Experts each{.count = 4, .per_token = 1, .ffn_hidden_size = 8};
  for (const int64_t interval : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    Experts odd = each;
    odd.layer_interval = interval;
    EXPECT_EQ(odd.layers(48), 0);
  }
  for (const int64_t dense : {int64_t{48}, int64_t{49}, INT64_MAX, INT64_MIN}) {
    Experts odd = each;
    odd.first_dense_layers = dense;
    EXPECT_EQ(odd.layers(48), 0);
  }
}

// 6 x the weights that a token passes, by hand from arXiv 2401.04088, table 1.
TEST(Experts, FlopsFollowFromWhatATokenPasses) {
  const ModelSpec mixtral = shape_of("mixtral");
  const double attention = 2.0 * 4096 * (4096 + 1024), expert = 3.0 * 4096 * 14336, router = 8.0 * 4096;
  const double weights = 32 * (attention + 2 * expert + router) + 32000.0 * 4096;
  EXPECT_DOUBLE_EQ(flops_per_token(mixtral, 4096, FlopFormula::causal), 6 * weights + 6.0 * 32 * 4096 * 4096);
  EXPECT_DOUBLE_EQ(flops_per_token(mixtral, 4096, FlopFormula::full), 6 * weights + 12.0 * 32 * 4096 * 4096);
  EXPECT_DOUBLE_EQ(flops_per_token(mixtral, 4096, FlopFormula::six_n), 6.0 * 12879925248);
}

TEST(Experts, PredictionLayersReadTheHeadAgain) {
  ModelSpec with = shape_of("DeepSeek-V3"), without = with;
  without.prediction_layers.reset();
  EXPECT_EQ(count_parameters(without).total(), 671026404352);
  EXPECT_EQ(count_parameters(without).active(), 37552282624);
  const double more =
      flops_per_token(with, 4096, FlopFormula::causal) - flops_per_token(without, 4096, FlopFormula::causal);
  const double block = 1536.0 * (7168 + 128 * 192) + 7168.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 7168 +
                       3.0 * 7168 * 2048 * 9 + 256.0 * 7168 + 2.0 * 7168 * 7168;
  EXPECT_DOUBLE_EQ(more, 6 * (block + 129280.0 * 7168) + 6.0 * 128 * (192 + 128) * 2048);
}

// Megatron-LM copies the last layer, which is dense where the interval leaves it out.
TEST(Experts, APredictionLayerIsOfTheLastLayersKind) {
  ModelSpec model = shape_of("mixtral");
  model.prediction_layers = 1;
  const int64_t sparse = count_parameters(model).prediction;
  model.experts->layer_interval = 3;  // 32 = 10 x 3 + 2
  EXPECT_EQ(sparse - count_parameters(model).prediction, 7 * 3 * int64_t{4096} * 14336 + 8 * 4096);
}

TEST(Experts, BiasesSinksGatesAndSharedExpertsCount) {
  ModelSpec model = shape_of("mixtral");
  const ParameterCount plain = count_parameters(model);
  model.attention_sinks = true;
  EXPECT_EQ(count_parameters(model).attention - plain.attention, 32 * 32);
  model.experts->shared_ffn_hidden_size = 1024;
  model.experts->shared_gate = true;
  const ParameterCount more = count_parameters(model);
  EXPECT_EQ(more.mlp - plain.mlp, 32 * (3 * 4096 * 1024 + 4096));
  EXPECT_EQ(more.matmul_active - plain.matmul_active, 32 * (3 * 4096 * 1024 + 4096));
  ModelSpec biased = shape_of("mixtral");
  biased.linear_bias = true;
  EXPECT_EQ(count_parameters(biased).mlp - plain.mlp, 32 * (8 * (2 * 14336 + 4096) + 8));
}

TEST(Experts, RefuseWhatDoesNotFitTogether) {
  const auto problems_of = [](void (*change)(ModelSpec&)) {
    ModelSpec model = shape_of("DeepSeek-V3");
    change(model);
    return check_model(model, "");
  };
  EXPECT_TRUE(problems_of([](ModelSpec&) {}).empty());
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.experts->groups = 7; }), "7 groups"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.experts->groups = 64, m.experts->groups_per_token = 1; }),
                       "more than the 4 experts"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.experts->first_dense_layers = 61; }), "no layer has experts"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.experts->layer_interval = 0; }), "layer_interval"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.experts->capacity_factor = 0; }), "capacity_factor"));
  EXPECT_TRUE(
      mentions(problems_of([](ModelSpec& m) { m.experts->shared_ffn_hidden_size = 0, m.experts->shared_gate = true; }),
               "shared_gate"));
  EXPECT_TRUE(
      mentions(problems_of([](ModelSpec& m) { m.experts->aux_loss_coefficient = -1; }), "aux_loss_coefficient"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.latent_attention->rope_head_dim = 63; }), "odd"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.latent_attention->key_value_rank = 0; }), "key_value_rank"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.qk_norm = true; }), "latent_attention"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.prediction_layers = 62; }), "prediction_layers"));
  EXPECT_TRUE(mentions(problems_of([](ModelSpec& m) { m.mamba = MambaMixers{.layers = 70}; }), "mamba"));
}

TEST(Experts, SpecificationsOfVersion01AreRead) {
  TrainSpec spec;
  spec.model = shape_of("mixtral");
  Json json = train_spec_to_json(spec);
  json["model"].erase("experts");
  json["model"]["num_experts"] = 8;
  json["model"]["experts_per_token"] = 2;
  spec.model.experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 14336};
  EXPECT_EQ(train_spec_from_json(json, "spec").model, spec.model);
  json["model"]["num_experts"] = nullptr;
  EXPECT_FALSE(train_spec_from_json(json, "spec").model.experts);
}

TEST(Experts, KeysOfVersion01ReplaceNoExperts) {
  TrainSpec spec;
  spec.model = shape_of("mixtral");
  spec.model.experts->capacity_factor = 1.25;
  Json json = train_spec_to_json(spec);
  json["model"]["num_experts"] = 4;
  json["model"]["experts_per_token"] = 1;
  EXPECT_EQ(train_spec_from_json(json, "spec").model, spec.model);
}

}  // namespace
}  // namespace tprimat
