#include <gtest/gtest.h>

#include <algorithm>

#include "compare/audit.h"
#include "unit/compare/sample_runs.h"

// What two runs may differ in without being other work, and what makes them so.
namespace tprimat::results {
namespace {

using PrintedNames = std::map<std::string, std::string>;

LoadedRun one_side() { return sample_run("a.json", Platform::nvd, Framework::nemo, 1.0); }
LoadedRun the_other_side() { return noisy_run("b.json", Platform::nvd, Framework::nemo, 1.0, 1); }

std::string sentence_of_pair(const RunResult& reference, const RunResult& subject, const std::string& code) {
  const Contender before{"A", "label", {{"a.json", reference}}, {}}, after{"B", "label", {{"b.json", subject}}, {}};
  for (const Finding& finding : audit_pair(before, after))
    if (finding.code == code) return finding.sentence;
  return "";
}

TEST(Differences, ExpertsOrAWindowOnOneSideOnlyAreOtherWork) {
  const RunResult dense = one_side().result;
  RunResult sparse = the_other_side().result, windowed = the_other_side().result;
  Experts& experts = sparse.model_info.shape->experts.emplace();
  experts.count = 8, experts.per_token = 2, experts.ffn_hidden_size = 4096;
  windowed.model_info.shape->sliding_window = 512;
  EXPECT_EQ(sentence_of_pair(dense, sparse, "sparse_against_dense"),
            "one side is a mixture of experts, the other a dense model: dense against 2 of 8 experts per token");
  EXPECT_EQ(sentence_of_pair(dense, sparse, "model_shape"), "") << "said once";
  EXPECT_EQ(sentence_of_pair(windowed, dense, "model_shape"),
            "the models differ in shape: sliding window 512 against none");
}

TEST(Differences, AWindowAsLongAsTheSequenceIsNone) {
  RunResult windowed = the_other_side().result;
  windowed.model_info.shape->sliding_window = windowed.training_config.sequence_length;
  EXPECT_EQ(sentence_of_pair(one_side().result, windowed, "model_shape"), "");
}

TEST(Differences, APaddedVocabularyIsADetail) {
  RunResult padded = the_other_side().result;
  padded.model_info.shape->vocab_size = 32128;
  EXPECT_EQ(sentence_of_pair(one_side().result, padded, "model_shape"), "");
  EXPECT_NE(sentence_of_pair(one_side().result, padded, "model_details").find("vocabulary 32000 against 32128"),
            std::string::npos);
}

TEST(Differences, ParameterCountsThatLogsRoundAreOneModel) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.model_info.shape.reset(), b.model_info.shape.reset();
  a.model_info.num_parameters = 15'706'484'224, b.model_info.num_parameters = 15'780'000'000;
  EXPECT_EQ(sentence_of_pair(a, b, "model_shape"), "");
  b.model_info.num_parameters = 16'800'000'000;
  EXPECT_NE(sentence_of_pair(a, b, "model_shape").find("parameters"), std::string::npos);
}

TEST(Differences, NamesOfOneOptimizerAreNoDifference) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.training_config.optimizer = "adam";
  for (const char* name : {"AdamW", "adamw_torch_fused", "distributed_fused_adam", "FusedAdam", "Adam"}) {
    b.training_config.optimizer = name;
    EXPECT_EQ(sentence_of_pair(a, b, "optimizer"), "") << name;
  }
  for (const char* name :
       {"sgd", "Muon", "adafactor", "---", "?", "adamw, moments in bf16", "adamw, no master weights"}) {
    b.training_config.optimizer = name;
    EXPECT_NE(sentence_of_pair(a, b, "optimizer"), "") << name;
  }
}

TEST(Differences, AScheduleIsWhatFollowsItsWarmup) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.learning_rates.clear(), b.learning_rates.clear();
  a.training_config.schedule = "linear";
  b.training_config.schedule = "linear_warmup_constant";
  EXPECT_NE(sentence_of_pair(a, b, "learning_rate"), "");
  a.training_config.schedule = "constant_with_warmup";
  EXPECT_EQ(sentence_of_pair(a, b, "learning_rate"), "");
  a.training_config.schedule = "CosineAnnealing", b.training_config.schedule = "linear_warmup_cosine_annealing";
  EXPECT_EQ(sentence_of_pair(a, b, "learning_rate"), "");
  a.training_config.schedule = "constant", b.training_config.schedule = "constant_then_linear";
  EXPECT_NE(sentence_of_pair(a, b, "learning_rate"), "");
}

TEST(Differences, PrintedNumbersAreComparedAsNumbers) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.effective_config = PrintedNames{{"attention_dropout", "0.1"}, {"hidden_dropout", "0.00"}};
  b.effective_config = PrintedNames{{"attention_dropout", "0.10"}, {"hidden_dropout", "0"}};
  EXPECT_EQ(sentence_of_pair(a, b, "data_settings"), "");
  b.effective_config->at("attention_dropout") = "0.2";
  EXPECT_NE(sentence_of_pair(a, b, "data_settings").find("attention dropout 0.1 against 0.2"), std::string::npos);
}

TEST(Differences, WhatSinglePrecisionRoundsIsNoDifference) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.training_config.weight_decay = 0.1, b.training_config.weight_decay = static_cast<double>(0.1f);
  EXPECT_EQ(sentence_of_pair(a, b, "optimizer"), "");
  b.training_config.weight_decay = 0.1001;
  EXPECT_EQ(sentence_of_pair(a, b, "optimizer"), "the optimizers differ: weight decay 0.1 against 0.1001");
}

TEST(Differences, OneSettingUnderTwoNamesIsCompared) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.effective_config = PrintedNames{{"packed_sequence", "True"}, {"use_flash_attn", "True"}};
  b.effective_config = PrintedNames{{"packing", "true"}, {"use_flash_attn", "1"}};
  EXPECT_EQ(sentence_of_pair(a, b, "data_settings"), "");
  EXPECT_EQ(sentence_of_pair(a, b, "tuning"), "");
  b.effective_config = PrintedNames{{"packing", "false"}, {"use_flash_attn", "False"}};
  EXPECT_EQ(sentence_of_pair(a, b, "data_settings"),
            "settings that change the computation differ: packed sequences on against off");
  EXPECT_NE(sentence_of_pair(a, b, "tuning").find("flash attention on against off"), std::string::npos);
}

TEST(Differences, WhatEarlierVersionsExtractedTellsRecomputationAndSharding) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.effective_config = PrintedNames{{"zero_stage", "1"}, {"recompute_granularity", "None"}};
  b.effective_config = PrintedNames{{"zero_optimization_stage", "3"}, {"recompute_granularity", "full"}};
  const std::string sentence = sentence_of_pair(a, b, "tuning");
  EXPECT_NE(sentence.find("ZeRO stage 1 against 3, recomputation off against full"), std::string::npos) << sentence;
}

TEST(Differences, ABatchIsNotSaidToBeAllThatDiffers) {
  RunResult subject = the_other_side().result;
  subject.training_config.global_batch_size = 128;
  subject.precision = Precision::fp8;
  EXPECT_EQ(sentence_of_pair(one_side().result, subject, "batch").find("only"), std::string::npos);
}

TEST(Differences, ASizeThatASideDoesNotTellIsNoOtherLayout) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.parallelism_config.tensor_model_parallel_size = b.parallelism_config.tensor_model_parallel_size = 1;
  a.parallelism_config.data_parallel_size = 8;
  EXPECT_EQ(sentence_of_pair(a, b, "layout"), "");
  b.parallelism_config.data_parallel_size = 4;
  EXPECT_NE(sentence_of_pair(a, b, "layout").find("TP1 DP8 against TP1 DP4"), std::string::npos);
}

TEST(Differences, AnFp8RecipeMattersInFp8Alone) {
  RunResult a = one_side().result, b = the_other_side().result;
  a.effective_config = PrintedNames{{"fp8_recipe", "delayed"}};
  b.effective_config = PrintedNames{{"fp8_recipe", "null"}};
  EXPECT_EQ(sentence_of_pair(a, b, "tuning"), "");
  a.precision = b.precision = Precision::fp8;
  EXPECT_NE(sentence_of_pair(a, b, "tuning").find("FP8 recipe delayed against off"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results
