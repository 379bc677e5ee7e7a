#include "config/layout_rules.h"

#include <gtest/gtest.h>

#include <random>

#include "spec/model_catalogue.h"

namespace tprimat::suite {
namespace {

const ModelSpec& qwen() {
  static const ModelSpec model = *find_model("qwen2.5_7b");  // 28 layers, 28 heads, 4 KV heads
  return model;
}

ParallelSpec sizes(int64_t tensor, int64_t pipeline, int64_t data, int64_t context = 1, int64_t stages = 1) {
  ParallelSpec layout;
  layout.tensor = tensor;
  layout.pipeline = pipeline;
  layout.data = data;
  layout.context = context;
  layout.virtual_pipeline = stages;
  return layout;
}

LayoutTask task(int64_t devices = 8) { return {qwen(), devices, 1, 128, 2048}; }

TEST(LayoutRules, ASoundLayoutBreaksNone) {
  EXPECT_TRUE(list_broken_rules(task(), sizes(4, 2, 1), 128).empty());
  EXPECT_TRUE(list_broken_rules(task(), sizes(1, 1, 8), 16).empty());
  EXPECT_TRUE(list_broken_rules(task(), sizes(1, 4, 1, 2, 7)).empty());
  ParallelSpec ends = sizes(1, 2, 1, 1, 15);  // 28 layers fill 30 places
  ends.ends_as_layers = true;
  EXPECT_TRUE(list_broken_rules(task(2), ends).empty());
}

TEST(LayoutRules, EveryBrokenRuleIsASentenceWithItsNumbers) {
  const auto only = [](const std::vector<std::string>& rules) {
    return rules.size() == 1 ? rules[0] : std::to_string(rules.size()) + " rules";
  };
  EXPECT_EQ(only(list_broken_rules(task(), sizes(4, 2, 2))),
            "TP 4 x PP 2 x DP 2 x CP 1 = 16 does not match the number of devices 8");
  EXPECT_EQ(only(list_broken_rules(task(), sizes(8, 1, 1))), "TP 8 does not divide the 28 attention heads");
  ModelSpec wide = qwen();
  wide.ffn_hidden_size = 7 * 4096;
  EXPECT_EQ(only(list_broken_rules({wide, 7, 1, 128, 2048}, sizes(7, 1, 1))),
            "TP 7 is neither a divisor nor a multiple of the 4 KV heads");
  EXPECT_EQ(only(list_broken_rules(task(), sizes(1, 8, 1))), "PP 8 x VP 1 = 8 does not divide the 28 layers");
  EXPECT_EQ(only(list_broken_rules(task(), sizes(4, 1, 2, 1, 2))), "VP 2 needs PP above 1");
  ParallelSpec ends = sizes(1, 8, 1);
  ends.ends_as_layers = true;
  EXPECT_EQ(only(list_broken_rules(task(), ends)),
            "PP 8 x VP 1 = 8 does not divide the 28 layers, the embedding and the loss");
  ends = sizes(1, 1, 8);
  ends.ends_as_layers = true;
  EXPECT_EQ(only(list_broken_rules(task(), ends)), "embedding_and_loss_as_layers needs PP above 1");
  EXPECT_EQ(only(list_broken_rules(task(), sizes(4, 1, 2), 63)), "GA 63 contradicts GBS 128 / (MBS 1 x DP 2) = 64");
  EXPECT_EQ(only(list_broken_rules(task(3), sizes(1, 1, 3))), "GBS 128 is not a multiple of MBS 1 x DP 3 = 3");
  LayoutTask odd = task();
  odd.sequence_length = 2050;
  EXPECT_EQ(only(list_broken_rules(odd, sizes(1, 1, 2, 4))), "SL 2050 is not a multiple of 2 x CP = 8");
}

TEST(LayoutRules, AnInterleavedPipelineTakesMicroBatchesByStages) {
  EXPECT_TRUE(list_broken_rules({qwen(), 4, 1, 8, 2048}, sizes(1, 4, 1, 1, 7)).empty());
  EXPECT_TRUE(list_broken_rules({qwen(), 4, 1, 6, 2048}, sizes(1, 4, 1)).empty());
  EXPECT_EQ(list_broken_rules({qwen(), 4, 1, 6, 2048}, sizes(1, 4, 1, 1, 7)),
            std::vector<std::string>{"interleaving with VP 7 needs PP 4 to divide GA 6"});
}

TEST(LayoutRules, SequenceParallelSplitsTheTokensOfAMicroBatch) {
  ParallelSpec layout = sizes(4, 1, 1);
  layout.sequence_parallel = true;
  EXPECT_TRUE(list_broken_rules({qwen(), 4, 2, 8, 1026}, layout).empty());
  EXPECT_EQ(list_broken_rules({qwen(), 4, 1, 8, 1026}, layout),
            std::vector<std::string>{
                "SP splits the MBS 1 x SL 1026 / CP 1 = 1026 tokens of a micro-batch, which are not divisible by "
                "TP 4"});
}

TrainSpec training_of(const LayoutTask& task, const ParallelSpec& layout) {
  TrainSpec spec;
  spec.model = task.model;
  spec.parallel = layout;
  spec.sequence_length = task.sequence_length;
  spec.micro_batch_size = task.micro_batch_size;
  spec.global_batch_size = task.global_batch_size;
  spec.steps = 10;
  return spec;
}

// So that a configuration that loads gives a training that starts, and a mistake in a layout one message.
TEST(LayoutRules, SayWhatTheTrainSpecsOwnRulesSay) {
  std::mt19937 random(7);
  const auto draw = [&](std::initializer_list<int64_t> values) { return values.begin()[random() % values.size()]; };
  int sound = 0;
  for (int i = 0; i < 20000; ++i) {
    ParallelSpec layout =
        sizes(draw({1, 1, 2, 4, 7}), draw({1, 1, 2, 4, 8}), draw({1, 2, 3}), draw({1, 1, 2, 3}), draw({1, 1, 2, 7}));
    layout.sequence_parallel = random() % 2 == 0;
    const LayoutTask drawn{qwen(), layout.ranks(), draw({1, 2, 3}), draw({6, 12, 16, 24, 36}), draw({30, 36, 64})};
    const bool passes = list_broken_rules(drawn, layout).empty();
    EXPECT_EQ(passes, check_train_spec(training_of(drawn, layout), "x").empty()) << print_layout(drawn, layout);
    sound += passes;
  }
  EXPECT_GT(sound, 500);
}

TEST(LayoutRules, TensorParallelMayExceedTheKeyValueHeads) {
  ModelSpec model = qwen();
  model.num_attention_heads = 32;
  model.num_key_value_heads = 4;
  EXPECT_TRUE(list_broken_rules({model, 8, 1, 128, 2048}, sizes(8, 1, 1)).empty());
}

TEST(LayoutRules, ProductsBeyond64BitsAreNoProblem) {
  EXPECT_FALSE(list_broken_rules(task(), sizes(65536, 65536, 65536, 65536, 10000)).empty());
}

TEST(LayoutRules, EverySuggestionPasses) {
  for (int64_t devices = 1; devices <= 64; ++devices)
    for (const ParallelSpec& wanted : {sizes(8, 1, 1), sizes(3, 5, 7), sizes(1, 1, 64, 4), sizes(2, 7, 1, 1, 3)})
      if (const auto found = find_sound_layout(task(devices), wanted)) {
        EXPECT_TRUE(list_broken_rules(task(devices), *found).empty()) << devices;
      }
}

TEST(LayoutRules, SuggestsTheNearestLayout) {
  EXPECT_EQ(suggest_layout(task(), sizes(4, 2, 2)), "a valid layout: {TP: 4, PP: 2, DP: 1, GA: 128}");
  EXPECT_EQ(suggest_layout(task(), sizes(8, 1, 1)), "a valid layout: {TP: 4, PP: 1, DP: 2, GA: 64}");
}

TEST(LayoutRules, SuggestsAnotherBatchWhenThatIsWhatIsWrong) {
  LayoutTask small = task(11);
  small.global_batch_size = 100;
  EXPECT_EQ(suggest_layout(small, sizes(1, 1, 11)),
            "with global_batch_size: 110, a valid layout: {TP: 1, PP: 1, DP: 11, GA: 10}");
}

TEST(StateBytes, FollowFromTheCount) {
  const double parameters = static_cast<double>(count_parameters(qwen()).total());
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 8), Precision::bf16, OptimizerSpec{}, 0), 18 * parameters);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(4, 1, 2), Precision::bf16, OptimizerSpec{}, 0),
                   18 * parameters / 4);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(4, 1, 2), Precision::bf16, OptimizerSpec{}, 3),
                   18 * parameters / 8);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 1), Precision::fp32, OptimizerSpec{}, 0), 16 * parameters);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 2), Precision::bf16, OptimizerSpec{}, 1),
                   (2 + 4 + 6) * parameters);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 2), Precision::bf16, OptimizerSpec{}, 2),
                   (2 + 2 + 6) * parameters);
}

TEST(StateBytes, FollowTheOptimizersFormats) {
  const double parameters = static_cast<double>(count_parameters(qwen()).total());
  OptimizerSpec compact;
  compact.moments = MomentFormat::bf16;
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 1), Precision::bf16, compact, 0), 14 * parameters);
  compact.master_weights = false;
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 1), Precision::bf16, compact, 0), 10 * parameters);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 2), Precision::bf16, compact, 1), 8 * parameters);
  EXPECT_DOUBLE_EQ(estimate_state_bytes(qwen(), sizes(1, 1, 1), Precision::tf32, compact, 0), 12 * parameters);
}

// 32 layers, 8 experts in each, 8 KV heads.
const ModelSpec& mixtral() {
  static const ModelSpec model = [] {
    ModelSpec sparse = *find_model("mistral_7b");
    sparse.name = "mixtral";
    sparse.experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 14336};
    return sparse;
  }();
  return model;
}

ParallelSpec with_experts(ParallelSpec layout, int64_t parts, int64_t tensor = 1) {
  layout.expert = parts, layout.expert_tensor = tensor;
  return layout;
}

TEST(ExpertRules, ExpertsTakeRanksOfTheOtherSizes) {
  const LayoutTask sparse{mixtral(), 64, 1, 512, 4096};
  EXPECT_TRUE(list_broken_rules(sparse, with_experts(sizes(1, 1, 64), 8)).empty());
  EXPECT_TRUE(list_broken_rules(sparse, with_experts(sizes(2, 4, 8), 8, 2)).empty());
  EXPECT_TRUE(list_broken_rules(sparse, with_experts(sizes(8, 1, 4, 2), 8, 8)).empty());
  EXPECT_TRUE(list_broken_rules(sparse, sizes(8, 1, 8)).empty());
}

TEST(ExpertRules, EveryBrokenOneIsASentenceWithItsNumbers) {
  const LayoutTask sparse{mixtral(), 64, 1, 512, 4096};
  const auto only = [](const std::vector<std::string>& rules) {
    return rules.size() == 1 ? rules[0] : std::to_string(rules.size()) + " rules";
  };
  EXPECT_EQ(only(list_broken_rules(sparse, with_experts(sizes(1, 1, 64), 16))), "EP 16 does not divide the 8 experts");
  EXPECT_EQ(only(list_broken_rules(sparse, with_experts(sizes(1, 16, 4), 8))),
            "EP 8 x ETP 1 = 8 does not divide TP 1 x CP 1 x DP 4 = 4");
  EXPECT_EQ(only(list_broken_rules({mixtral(), 3, 1, 3, 4096}, with_experts(sizes(1, 1, 3), 1, 3))),
            "ETP 3 does not divide ffn_hidden_size 14336 of an expert");
  EXPECT_EQ(only(list_broken_rules(task(), with_experts(sizes(1, 1, 8), 4, 2))),
            "EP 4 and ETP 2 need a model with experts, but qwen2.5_7b is dense");
  ModelSpec shared = mixtral();
  shared.experts->shared_ffn_hidden_size = 1023;
  EXPECT_EQ(only(list_broken_rules({shared, 2, 1, 2, 4096}, sizes(2, 1, 1))),
            "TP 2 does not divide shared_ffn_hidden_size 1023 of the experts");
}

TEST(ExpertRules, ARemedyKeepsThemAsFarAsTheyFit) {
  const LayoutTask sparse{mixtral(), 64, 1, 512, 4096};
  EXPECT_EQ(suggest_layout(sparse, with_experts(sizes(1, 1, 64), 16)),
            "a valid layout: {TP: 1, PP: 1, EP: 8, DP: 64, GA: 8}");
  EXPECT_EQ(suggest_layout(task(), with_experts(sizes(1, 1, 8), 4)), "a valid layout: {TP: 1, PP: 1, DP: 8, GA: 16}");
  std::mt19937 random(7);
  const auto draw = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
  for (int trial = 0; trial < 300; ++trial) {
    const LayoutTask any{trial % 2 == 0 ? mixtral() : qwen(), int64_t{1} << draw(6), 1, 64 * draw(4), 4096};
    const ParallelSpec wanted = with_experts(sizes(draw(8), draw(8), 1, draw(2)), draw(16), draw(4));
    const auto sound = find_sound_layout(any, wanted);
    EXPECT_TRUE(!sound || list_broken_rules(any, *sound).empty());
  }
}

TEST(ExpertRules, TheirWeightsAreSplitByTheirOwnSizes) {
  const OptimizerSpec adam;
  const double whole = estimate_state_bytes(mixtral(), sizes(1, 1, 64), Precision::bf16, adam, 0);
  const double parts = estimate_state_bytes(mixtral(), with_experts(sizes(1, 1, 64), 8), Precision::bf16, adam, 0);
  const double routed = 18.0 * 32 * 8 * 3 * 4096 * 14336;
  EXPECT_NEAR(whole - parts, routed * 7 / 8, 1e-6 * routed);
  // With ZeRO-1, 12 of the 18 bytes are shared: by 64 ranks, and the experts' by the 8 that hold the same.
  const double shared = estimate_state_bytes(mixtral(), with_experts(sizes(1, 1, 64), 8), Precision::bf16, adam, 1);
  EXPECT_NEAR(parts - shared, (whole - routed) * 12 / 18 * 63 / 64 + routed / 8 * 12 / 18 * 7 / 8, 1e-6 * routed);
}

}  // namespace
}  // namespace tprimat::suite
