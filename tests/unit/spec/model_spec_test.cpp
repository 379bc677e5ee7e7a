#include "spec/model_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tprimat {
namespace {

// Small enough to count by hand.
ModelSpec tiny() {
  ModelSpec model;
  model.num_layers = 2;
  model.hidden_size = 8;
  model.ffn_hidden_size = 12;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 2;
  model.vocab_size = 100;
  model.max_position_embeddings = 64;
  return model;
}

bool mentions(const std::vector<Problem>& problems, std::string_view text) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem& each) { return each.what.find(text) != std::string::npos; });
}

TEST(CountParameters, CountsEveryComponentOfADenseModel) {
  const ParameterCount count = count_parameters(tiny());
  EXPECT_EQ(count.embedding, 800);
  EXPECT_EQ(count.attention, 2 * (64 + 32 + 32 + 64));
  EXPECT_EQ(count.mlp, 2 * 3 * 8 * 12);
  EXPECT_EQ(count.norms, 5 * 8);
  EXPECT_EQ(count.head, 800);
  EXPECT_EQ(count.matmul_active, 384 + 576 + 800);
  EXPECT_EQ(count.total(), 800 + 384 + 576 + 40 + 800);
}

TEST(CountParameters, TiedHeadCountsOnceButStillMultiplies) {
  ModelSpec model = tiny();
  model.tied_embeddings = true;
  EXPECT_EQ(count_parameters(model).head, 0);
  EXPECT_EQ(count_parameters(model).matmul_active, count_parameters(tiny()).matmul_active);
}

TEST(CountParameters, BiasesAndNormsOfEachFamily) {
  ModelSpec qwen2 = tiny(), qwen3 = tiny(), gpt = tiny();
  qwen2.qkv_bias = true;
  EXPECT_EQ(count_parameters(qwen2).attention - count_parameters(tiny()).attention, 2 * (8 + 4 + 4));
  qwen3.qk_norm = true;
  EXPECT_EQ(count_parameters(qwen3).attention - count_parameters(tiny()).attention, 2 * (2 + 2));
  gpt.linear_bias = true;
  gpt.norm = NormKind::layer;
  gpt.mlp = MlpKind::gelu;
  gpt.position = PositionKind::learned;
  const ParameterCount count = count_parameters(gpt);
  EXPECT_EQ(count.embedding, 800 + 64 * 8);
  EXPECT_EQ(count.attention, 2 * (192 + 8 + 4 + 4 + 8));
  EXPECT_EQ(count.mlp, 2 * (2 * 96 + 12 + 8));
  EXPECT_EQ(count.norms, 5 * 16);
}

TEST(CountParameters, ExpertsAllCountButOnlySomeMultiply) {
  ModelSpec model = tiny();
  model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden_size = model.ffn_hidden_size};
  EXPECT_EQ(count_parameters(model).mlp, 2 * (4 * 288 + 4 * 8));
  EXPECT_EQ(count_parameters(model).matmul_active, 384 + 2 * (2 * 288 + 4 * 8) + 800);
}

TEST(FlopsPerToken, FollowsTheNamedFormulas) {
  const double linear = 6.0 * (384 + 576 + 800);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 32, FlopFormula::full), linear + 12.0 * 2 * 4 * 2 * 32);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 32, FlopFormula::causal), linear + 6.0 * 2 * 4 * 2 * 32);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 32, FlopFormula::six_n), 6.0 * 2600);
}

TEST(FlopsPerToken, WindowLimitsTheKeys) {
  ModelSpec model = tiny();
  model.sliding_window = 4;
  const double linear = 6.0 * (384 + 576 + 800);
  EXPECT_DOUBLE_EQ(flops_per_token(model, 32, FlopFormula::full), linear + 12.0 * 16 * 4);
  const double mean = (1 + 2 + 3 + 4 * 29) / 32.0;
  EXPECT_DOUBLE_EQ(flops_per_token(model, 32, FlopFormula::causal), linear + 12.0 * 16 * mean);
}

TEST(FlopsPerToken, LongWindowChangesNothing) {
  for (const int64_t window : {31, 32, 1000}) {
    ModelSpec model = tiny();
    model.sliding_window = window;
    EXPECT_LE(flops_per_token(model, 32, FlopFormula::causal), flops_per_token(tiny(), 32, FlopFormula::causal))
        << window;
    if (window >= 32) {
      EXPECT_EQ(flops_per_token(model, 32, FlopFormula::full), flops_per_token(tiny(), 32, FlopFormula::full));
      EXPECT_EQ(flops_per_token(model, 32, FlopFormula::causal), flops_per_token(tiny(), 32, FlopFormula::causal));
    }
  }
}

// A frozen weight takes part in the forward pass and in the gradient of its input; scores have no weights.
TEST(FlopsPerToken, FrozenWeightsHaveNoGradientOfTheirOwn) {
  const double all = 6.0 * 1760, attention = 12.0 * 2 * 8 * 8;
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 16, FlopFormula::causal), all + attention);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 16, FlopFormula::causal, 0), all * 2 / 3 + attention);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 16, FlopFormula::causal, 60), 4.0 * 1760 + 2.0 * 60 + attention);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 16, FlopFormula::causal, 1 << 30), all + attention);
  EXPECT_DOUBLE_EQ(flops_per_token(tiny(), 16, FlopFormula::six_n, 100), 4.0 * 2600 + 2.0 * 100);
}

TEST(FormulaId, CarriesNameAndVersion) {
  EXPECT_EQ(formula_id(FlopFormula::full), "full/1");
  EXPECT_EQ(formula_id(FlopFormula::causal), "causal/1");
  EXPECT_EQ(formula_id(FlopFormula::six_n), "6n/1");
}

TEST(CheckModel, AcceptsASoundShape) { EXPECT_TRUE(check_model(tiny(), "models.tiny").empty()); }

TEST(CheckModel, NamesEveryBadDimensionAndThePlace) {
  ModelSpec model = tiny();
  model.num_layers = 0;
  model.vocab_size = -3;
  const auto problems = check_model(model, "models.tiny");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_TRUE(mentions(problems, "num_layers"));
  EXPECT_TRUE(mentions(problems, "vocab_size"));
  EXPECT_EQ(problems[0].where, "models.tiny");
}

TEST(CheckModel, RefusesWhatDoesNotFitTogether) {
  ModelSpec heads = tiny(), odd = tiny(), lone = tiny(), many = tiny(), huge = tiny();
  heads.num_key_value_heads = 3;
  EXPECT_TRUE(mentions(check_model(heads, ""), "not a multiple of num_key_value_heads"));
  odd.head_dim = 3;
  EXPECT_TRUE(mentions(check_model(odd, ""), "odd"));
  lone.full_attention_layers = 1;
  EXPECT_TRUE(mentions(check_model(lone, ""), "without the sliding window"));
  many.experts = Experts{.count = 2, .per_token = 3, .ffn_hidden_size = 8};
  EXPECT_TRUE(mentions(check_model(many, ""), "experts.per_token"));
  huge.num_layers = huge.hidden_size = huge.ffn_hidden_size = 1 << 24;
  EXPECT_TRUE(mentions(check_model(huge, ""), "more than"));
}

TEST(CheckModel, RefusesConstantsOutOfRange) {
  ModelSpec model = tiny();
  model.norm_eps = 0;
  model.rope_theta = std::nan("");
  const auto problems = check_model(model, "");
  EXPECT_TRUE(mentions(problems, "norm_eps"));
  EXPECT_TRUE(mentions(problems, "rope_theta"));
}

}  // namespace
}  // namespace tprimat
