// What a log says of its model: the shape against the name, trained against frozen parameters, updates left out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "extract/logged_model.h"
#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "result/validity.h"

namespace tprimat::logs {
namespace {

std::string argument(const std::string& name, const std::string& value) {
  return fmt::format("  {} {} {}\n", name, std::string(50 - name.size(), '.'), value);
}

struct Shape {
  int layers = 32, hidden = 4096, heads = 32, inner = 14336, vocabulary = 128256;
  std::string experts = "None";
};

std::string model_dump(const Shape& shape, const std::string& more = "") {
  return "------------------------ arguments ------------------------\n" + argument("bf16", "True") +
         argument("num_layers", std::to_string(shape.layers)) + argument("hidden_size", std::to_string(shape.hidden)) +
         argument("num_attention_heads", std::to_string(shape.heads)) + argument("swiglu", "True") +
         argument("ffn_hidden_size", std::to_string(shape.inner)) + argument("group_query_attention", "True") +
         argument("num_query_groups", "8") + argument("vocab_size", std::to_string(shape.vocabulary)) +
         argument("num_experts", shape.experts) + argument("normalization", "RMSNorm") +
         argument("position_embedding_type", "rope") + argument("untie_embeddings_and_output_weights", "True") +
         argument("seq_length", "4096") + argument("world_size", "8") + argument("global_batch_size", "8") + more +
         "-------------------- end of arguments ---------------------\n";
}

std::string plain_steps(int count, int skipped_each = 0, double milliseconds = 500) {
  std::string text;
  for (int step = 1; step <= count; ++step)
    text += fmt::format(
        " iteration {}/ {} | elapsed time per iteration (ms): {} | global batch size: 8 | lm loss: "
        "9.1E+00 | number of skipped iterations: {} | number of nan iterations: 0 |\n",
        step, count, milliseconds, skipped_each);
  return text;
}

RunResult result_of_model(const std::string& text, const std::string& model = "") {
  KnownFacts known;
  known.model = model;
  known.device = "H100";
  return make_result(read_log_text(text, {}), "a.log", known);
}

bool model_warns(const RunResult& result, std::string_view words) {
  return std::any_of(result.warnings.begin(), result.warnings.end(),
                     [&](const std::string& warning) { return contains(warning, words); });
}

std::string refusal(const std::string& text, const std::string& model) {
  try {
    result_of_model(text, model);
  } catch (const Error& error) {
    return error.problems().front().what + " | " + error.problems().front().where;
  }
  return "";
}

TEST(LoggedModel, NameOfTheUserIsHeldAgainstTheShape) {
  const std::string log = model_dump({}) + plain_steps(8);
  EXPECT_EQ(refusal(log, "Llama 3.1 8B"), "");
  EXPECT_TRUE(result_of_model(log, "Llama 3.1 8B").derived.mfu);
  const std::string words = refusal(log, "Llama 3.1 70B");
  for (const char* part : {"Llama 3.1 70B", "layers 32, not 80", "hidden size 4096, not 8192", "--model"})
    EXPECT_TRUE(contains(words, part)) << words;
  EXPECT_EQ(refusal(log, "our own model"), "");
}

TEST(LoggedModel, ADenseNameIsNotThatOfAMixture) {
  EXPECT_TRUE(contains(refusal(model_dump({.experts = "8"}) + plain_steps(8), "Llama 3.1 8B"), "experts 8, not 0"));
  EXPECT_EQ(refusal(model_dump({.vocabulary = 32000, .experts = "8"}) + plain_steps(8), "Mixtral 8x7B"), "");
}

TEST(LoggedModel, HarmlessDifferencesPass) {
  EXPECT_EQ(refusal(model_dump({.vocabulary = 131072}) + plain_steps(8), "Llama 3.1 8B"), "");  // padded
  EXPECT_EQ(refusal(model_dump({}, argument("tensor_model_parallel_size", "2")) + "> total params: 4,015,130,624\n" +
                        plain_steps(8),
                    "Llama 3.1 8B"),
            "");  // of one rank
  EXPECT_EQ(refusal("trainable params: 20,971,520 || all params: 8,051,232,768 || trainable%: 0.2605\n" +
                        model_dump({}) + plain_steps(8),
                    "Llama 3.1 8B"),
            "");  // with adapters
}

TEST(LoggedModel, NameInTheLogGivesNoShapeAgainstIt) {
  const auto log = [](int layers) {
    return "using world size: 8, data-parallel-size: 8\n"
           "-------------------- arguments --------------------\n" +
           argument("model_name_or_path", "meta-llama/Llama-3.1-8B") +
           argument("num_hidden_layers", std::to_string(layers)) + argument("bf16", "True") +
           argument("seq_length", "4096") + argument("global_batch_size", "8") +
           "------------------ end of arguments ----------------\n" + plain_steps(8);
  };
  EXPECT_TRUE(result_of_model(log(32)).model_info.shape);
  const RunResult cut = result_of_model(log(4));
  EXPECT_FALSE(cut.model_info.shape);
  EXPECT_FALSE(cut.derived.mfu);
  EXPECT_TRUE(model_warns(cut, "layers 4, not 32"));
}

TEST(LoggedModel, TheNameOfAMixtureGivesItsShape) {
  const auto log = [](const std::string& more) {
    return "using world size: 8, data-parallel-size: 8\n"
           "-------------------- arguments --------------------\n" +
           argument("model_name_or_path", "mistralai/Mixtral-8x7B-v0.1") + argument("bf16", "True") +
           argument("seq_length", "4096") + argument("global_batch_size", "8") + more +
           "------------------ end of arguments ----------------\n" + plain_steps(8);
  };
  const RunResult named = result_of_model(log(""));
  ASSERT_TRUE(named.model_info.shape && named.model_info.shape->experts);
  EXPECT_EQ(named.model_info.shape->experts->per_token, 2);
  EXPECT_EQ(named.derived.mfu_by_formula.size(), 3u);
  for (const auto& [setting, words] :
       {std::pair{argument("num_local_experts", "16"), "experts 16, not 8"},
        {argument("num_local_experts", "8") + argument("num_experts_per_tok", "1"), "experts per token 1, not 2"},
        {argument("num_experts", "8") + argument("moe_ffn_hidden_size", "512"), "MLP size of an expert 512, not 14336"},
        {argument("num_experts", "8") + argument("moe_shared_expert_intermediate_size", "512"),
         "MLP size of the shared experts 512, not 0"}}) {
    const RunResult other = result_of_model(log(setting));
    EXPECT_FALSE(other.model_info.shape) << setting;
    EXPECT_TRUE(model_warns(other, words)) << setting;
    EXPECT_TRUE(model_warns(other, "no FLOPs and no MFU: the log is of a mixture of experts")) << setting;
  }
}

TEST(TrainableParameters, AsEachToolSaysIt) {
  const std::pair<const char*, std::optional<int64_t>> logs[] = {
      {"trainable params: 6,815,744 || all params: 6,745,231,360 || trainable%: 0.1010\n", 6815744},
      {"trainable params: 6,745,231,360 || all params: 6,745,231,360 || trainable%: 100.0\n", std::nullopt},
      {"Number of trainable parameters: 1,343,488\nNumber of non-trainable parameters: 2,779,683,840\n", 1343488},
      {"Number of trainable parameters: 1,100,048,384\nNumber of non-trainable parameters: 0\n", std::nullopt},
      {"6.8 M     Trainable params\n6.7 B     Non-trainable params\n6.7 B     Total params\n", 6800000},
      {"54.7 M    Trainable params\n0         Non-trainable params\n54.7 M    Total params\n", std::nullopt},
      {"Trainable parameters = 41,943,040 of 8,072,204,288 (0.52% trained)\n", 41943040},
      {"Trainable parameters: 1,000\nTotal parameters: 8,030,261,248\n", 1000},
      {"Trainable params: 6,815,744\nNon-trainable params: 100\n", 6815744},
      {"Number of trainable parameters = 8,030,261,248\n", std::nullopt},
      {"Number of trainable parameters = 1,003,782,656\n", std::nullopt},  // a shard of 8 devices
      {"Number of trainable parameters = 20,971,520\n", 20971520},
      {"Number of trainable parameters = 0\n", std::nullopt},
      {"trainable params: many\n", std::nullopt}};
  for (const auto& [text, trainable] : logs) {
    const RunResult result = result_of_model(text + model_dump({}) + plain_steps(8));
    EXPECT_EQ(result.model_info.trainable_parameters, trainable) << text;
    EXPECT_FALSE(model_warns(result, "part of the model")) << text;
  }
}

TEST(TrainableParameters, AdaptersWithoutACountAreWarnedOf) {
  for (const char* name : {"lora_r", "peft.lora_rank", "lora_alpha"}) {
    const RunResult result = result_of_model(model_dump({}, argument(name, "16")) + plain_steps(8));
    EXPECT_FALSE(result.model_info.trainable_parameters) << name;
    EXPECT_TRUE(model_warns(result, "only part of the model is trained")) << name;
  }
  EXPECT_TRUE(model_warns(result_of_model(model_dump({}, argument("peft_scheme", "lora")) + plain_steps(8)),
                          "part of the model"));
  for (const auto& [name, value] :
       {std::pair{"lora_r", "0"}, std::pair{"use_lora", "False"}, std::pair{"lora_r", "None"}})
    EXPECT_FALSE(
        model_warns(result_of_model(model_dump({}, argument(name, value)) + plain_steps(8)), "part of the model"))
        << name;
}

TEST(TrainableParameters, TheShareOfARanksPartIsThatOfTheModel) {
  const std::string dump = model_dump({}, argument("tensor_model_parallel_size", "2"));
  const RunResult adapters =
      result_of_model("10.0 M    Trainable params\n4.0 B    Non-trainable params\n" + dump + plain_steps(8));
  ASSERT_TRUE(adapters.model_info.trainable_parameters);
  EXPECT_NEAR(static_cast<double>(*adapters.model_info.trainable_parameters), 20.0e6, 0.1e6);
  const RunResult all =
      result_of_model("4.0 B    Trainable params\n0    Non-trainable params\n" + dump + plain_steps(8));
  EXPECT_FALSE(all.model_info.trainable_parameters);
  EXPECT_LT(adapters.derived.mfu->value, 0.75 * all.derived.mfu->value);
}

TEST(TrainableParameters, PrintedNamesOfAdaptersAreFound) {
  for (const char* line : {"peft=LoRA(target_modules=['linear_qkv', 'linear_proj'], dim=16, alpha=32, dropout=0.0)\n",
                           "Using LoraConfig(r=16, lora_alpha=32)\n", "Applying LoRA to linear_qkv\n",
                           "    peft_scheme: lora\n", "Freezing base model parameters\n"}) {
    const RunResult result = result_of_model(line + model_dump({}) + plain_steps(8));
    EXPECT_FALSE(result.derived.mfu) << line;
    EXPECT_TRUE(model_warns(result, "only part of the model is trained")) << line;
  }
  for (const char* line : {"from peft import LoRA\n", "    peft_scheme: null\n", "MyLoRA(dim=16)\n"})
    EXPECT_TRUE(result_of_model(line + model_dump({}) + plain_steps(8)).derived.mfu) << line;
}

TEST(LoggedModel, TorchtitansOwnNamesAreKnownWhereTheCountFits) {
  LoggedFacts facts;
  facts.model = "llama3 8B";
  facts.parameters = 8'030'261'248;
  ASSERT_TRUE(find_model_shape({}, facts));
  EXPECT_EQ(find_model_shape({}, facts)->num_layers, 32);
  facts.model = "llama3 70B";
  EXPECT_FALSE(find_model_shape({}, facts));
  facts.parameters.reset();
  EXPECT_EQ(find_model_shape({}, facts)->num_layers, 80);
  facts.model = "llama3 debugmodel";
  EXPECT_FALSE(find_model_shape({}, facts));
}

TEST(LoggedModel, SignsOfExpertsDenyADenseName) {
  Shape shape;
  std::string dump = model_dump(shape);
  const size_t line = dump.find("  num_experts");
  dump.erase(line, dump.find('\n', line) + 1 - line);
  const std::string losses = plain_steps(8);
  for (const std::string& sign :
       {argument("n_routed_experts", "64"), argument("expert_model_parallel_size", "8"),
        std::string("MixtralConfig {\n  \"num_local_experts\": 8,\n}\n"), std::string("num_moe_experts=8, top=2\n")})
    EXPECT_NE(refusal(sign + dump + losses, "Llama 3.1 8B").find("experts"), std::string::npos) << sign;
  std::string balanced = losses;
  for (size_t at = 0; (at = balanced.find("| number of skipped", at)) != std::string::npos; at += 60)
    balanced.insert(at, "| load_balancing_loss: 1.034E+00 ");
  EXPECT_NE(refusal(dump + balanced, "Llama 3.1 8B").find("load_balancing_loss"), std::string::npos);
  EXPECT_EQ(refusal(argument("expert_model_parallel_size", "8") + model_dump(shape) + losses, "Llama 3.1 8B"), "");
}

TEST(SkippedUpdates, CountedWhereTheLogCounts) {
  EXPECT_EQ(result_of_model(model_dump({}) + plain_steps(8)).skipped_updates, 0);
  EXPECT_EQ(result_of_model(model_dump({}) + plain_steps(8, 1)).skipped_updates, 8);
  EXPECT_EQ(result_of_model(model_dump({}) + plain_steps(8, 1) + plain_steps(8, 0, 510)).skipped_updates,
            0);  // repeated: only the last count
  std::string silent = plain_steps(8);
  for (const std::string words : {" number of skipped iterations: 0 |", " number of nan iterations: 0 |"})
    for (size_t at = 0; (at = silent.find(words)) != std::string::npos;) silent.erase(at, words.size());
  EXPECT_EQ(result_of_model(model_dump({}) + silent).skipped_updates, std::nullopt);
  EXPECT_EQ(result_of_model(model_dump({}) + silent +
                            "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536\n")
                .skipped_updates,
            1);
}

// Megatron-DeepSpeed's records count what DeepSpeed has reported before, or count nothing.
TEST(SkippedUpdates, AreNotCountedTwice) {
  std::string log = model_dump({});
  for (int step = 1; step <= 40; ++step) {
    if (step % 10 == 0) log += "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536\n";
    log += fmt::format(
        " [2026-03-02 10:00:{:02}] iteration {}/ 40 | elapsed time per iteration (ms): {:.1f} | lm loss: 9.1E+00 | "
        "number of skipped iterations: {} | number of nan iterations: 0 |\n",
        step, step, 500.0 + step % 3, step % 10 == 0 ? 1 : 0);
  }
  const RunResult counted = result_of_model(log);
  EXPECT_EQ(counted.skipped_updates, 4);
  EXPECT_EQ(count_skipped_updates(counted).all, 4);
  for (size_t at = 0; (at = log.find("skipped iterations: 1", at)) != std::string::npos;) log[at + 20] = '0';
  const RunResult uncounted = result_of_model(log);
  EXPECT_EQ(uncounted.skipped_updates, 4);
  EXPECT_EQ(count_skipped_updates(uncounted).all, 4);
}

TEST(SkippedUpdates, OfDeepSpeedsCounter) {
  const auto line = [](int step, int skipped) {
    return fmt::format(
        "[2023-04-18 01:48:{:02}] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped={}, "
        "lr=[0.001], mom=[(0.9, 0.95)]\n",
        step % 60, step, skipped);
  };
  EXPECT_EQ(result_of_model(line(10, 0) + line(20, 0) + line(30, 0)).skipped_updates, 0);
  EXPECT_EQ(result_of_model(line(10, 2) + line(20, 3) + line(30, 3)).skipped_updates, 3);
  EXPECT_EQ(result_of_model(line(1010, 7) + line(1020, 8) + line(1030, 8)).skipped_updates,
            1);  // a training that goes on
}

TEST(SkippedUpdates, OfStepRecords) {
  const auto record = [](int step, const char* more) {
    return fmt::format("{{\"step\":{},\"time_seconds\":0.5,\"loss\":9.0{}}}\n", step, more);
  };
  const std::string kept = ",\"skipped\":false", left = ",\"skipped\":true";
  EXPECT_EQ(
      result_of_model(record(1, left.c_str()) + record(2, kept.c_str()) + record(3, left.c_str())).skipped_updates, 2);
  EXPECT_EQ(result_of_model(record(1, kept.c_str()) + record(2, kept.c_str())).skipped_updates, 0);
  EXPECT_EQ(result_of_model(record(1, "") + record(2, "")).skipped_updates, std::nullopt);
}

}  // namespace
}  // namespace tprimat::logs
