#include "spec/train_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

TrainSpec sound_spec() {
  TrainSpec spec;
  spec.model = *find_model("llama");
  spec.sequence_length = 2048;
  spec.global_batch_size = 128;
  spec.steps = 100;
  spec.optimizer.warmup_steps = 10;
  return spec;
}

bool refuses(const TrainSpec& spec, std::string_view text) {
  const auto problems = check_train_spec(spec, "spec.json");
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem& each) { return each.what.find(text) != std::string::npos; });
}

TEST(CheckTrainSpec, AcceptsASoundOne) {
  EXPECT_TRUE(check_train_spec(sound_spec(), "").empty());
  TrainSpec spec = sound_spec();
  spec.parallel = {"all", 4, 2, 2, 2, 2};
  EXPECT_TRUE(check_train_spec(spec, "").empty());
}

TEST(CheckTrainSpec, BatchMustDivideAndTheHintWouldPass) {
  TrainSpec spec = sound_spec();
  spec.micro_batch_size = 3;
  const auto problems = check_train_spec(spec, "spec.json");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].hint.find("129"), std::string::npos);
  spec.global_batch_size = 129;
  EXPECT_TRUE(check_train_spec(spec, "").empty());
}

const std::pair<const char*, void (*)(TrainSpec&)> k_broken_rules[] = {
    {"sequence_length", [](TrainSpec& s) { s.sequence_length = 1 << 20; }},
    {"sequence_length", [](TrainSpec& s) { s.sequence_length = 0; }},
    {"context_parallel_size", [](TrainSpec& s) { s.parallel.context = 3; }},
    {"num_attention_heads", [](TrainSpec& s) { s.parallel.tensor = 3; }},
    {"num_key_value_heads",
     [](TrainSpec& s) {
       s.model.num_attention_heads = 48;
       s.model.num_key_value_heads = 6;
       s.parallel.tensor = 4;
     }},
    {"num_layers", [](TrainSpec& s) { s.parallel.pipeline = 5; }},
    {"virtual_pipeline", [](TrainSpec& s) { s.parallel.virtual_pipeline = 2; }},
    {"warmup_steps", [](TrainSpec& s) { s.optimizer.warmup_steps = 100; }},
    {"warmup_steps", [](TrainSpec& s) { s.optimizer.warmup_steps = -1; }},
    {"learning_rate", [](TrainSpec& s) { s.optimizer.learning_rate = std::nan(""); }},
    {"min_learning_rate", [](TrainSpec& s) { s.optimizer.min_learning_rate = 1; }},
    {"beta2", [](TrainSpec& s) { s.optimizer.beta2 = 1; }},
    {"epsilon", [](TrainSpec& s) { s.optimizer.epsilon = 0; }},
    {"weight_decay", [](TrainSpec& s) { s.optimizer.weight_decay = -0.1; }},
    {"clip_grad_norm", [](TrainSpec& s) { s.optimizer.clip_grad_norm = INFINITY; }},
    {"adamw", [](TrainSpec& s) { s.optimizer.type = "adagrad"; }},
    {"data_parallel_size", [](TrainSpec& s) { s.parallel.data = 0; }},
    {"threads", [](TrainSpec& s) { s.threads = -1; }},
    {"dataset", [](TrainSpec& s) { s.data.dataset = ""; }},
    {"num_layers", [](TrainSpec& s) { s.model.num_layers = 0; }}};

TEST(CheckTrainSpec, NamesEachBrokenRule) {
  for (const auto& [text, breaks] : k_broken_rules) {
    TrainSpec spec = sound_spec();
    breaks(spec);
    EXPECT_TRUE(refuses(spec, text)) << text;
  }
}

TEST(LearningRate, WarmsUpLinearlyAndReachesThePeak) {
  OptimizerSpec optimizer;
  optimizer.learning_rate = 1.0;
  optimizer.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 1, 12), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 4, 12), 1.0);
}

TEST(LearningRate, EachScheduleEndsWhereItShould) {
  OptimizerSpec optimizer;
  optimizer.learning_rate = 1.0;
  optimizer.min_learning_rate = 0.1;
  optimizer.warmup_steps = 4;
  optimizer.schedule = ScheduleKind::linear;
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 8, 12), 0.55);
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 12, 12), 0.1);
  optimizer.schedule = ScheduleKind::cosine;
  EXPECT_NEAR(learning_rate_at(optimizer, 8, 12), 0.55, 1e-15);
  EXPECT_NEAR(learning_rate_at(optimizer, 6, 12), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 12, 12), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 13, 12), 0.1);
  optimizer.schedule = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 12, 12), 1.0);
}

TEST(LearningRate, WithoutWarmupTheFirstStepAlreadyDecays) {
  OptimizerSpec optimizer;
  optimizer.learning_rate = 1.0;
  optimizer.schedule = ScheduleKind::linear;
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 1, 4), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate_at(optimizer, 4, 4), 0.0);
}

TEST(TrainSpecJson, RoundTripsEverything) {
  TrainSpec spec = sound_spec();
  spec.model = *find_model("mixtral");
  spec.model.sliding_window = 4096;
  spec.data.dataset = "/data/corpus_text_document";
  spec.optimizer.schedule = ScheduleKind::linear;
  spec.parallel = {"all", 4, 2, 2, 2, 2};
  spec.precision = Precision::fp32;
  spec.seed = 7;
  spec.threads = 3;
  const Json json = train_spec_to_json(spec);
  EXPECT_EQ(train_spec_from_json(parse_json(print_json(json), "spec.json"), "spec.json"), spec);
}

TEST(TrainSpecJson, NamesTheKeyOfAWrongType) {
  try {
    train_spec_from_json(parse_json(R"({"optimizer": {"learning_rate": "fast"}})", "spec.json"), "spec.json");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("spec.json.optimizer.learning_rate"), std::string::npos) << error.what();
  }
}

TEST(TrainSpecJson, NamesUnknownKeysAtAnyDepth) {
  const Json json =
      parse_json(R"({"stepps": 3, "optimizer": {"learning_rate": 1, "beta3": 0.9}, "model": {"name": "m"}})", "x");
  const std::vector<Problem> problems = find_unknown_train_spec_keys(json, "spec.json");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].what.find("no key stepps"), std::string::npos);
  EXPECT_NE(problems[1].what.find("no key optimizer.beta3"), std::string::npos);
  EXPECT_TRUE(find_unknown_train_spec_keys(train_spec_to_json(sound_spec()), "spec.json").empty());
}

}  // namespace
}  // namespace tprimat
