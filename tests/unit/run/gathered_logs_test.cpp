// Which logs are found, which of them are taken, and which model each is believed to be of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "extract/read_log.h"
#include "extract/to_result.h"
#include "run/gathered_logs.h"
#include "run/log_names.h"
#include "run/log_places.h"
#include "run/model_identity.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_config = R"(
models:
  llama: {name: "llama3.1_8b"}
  qwen: {name: "qwen2.5_7b"}
  llama_long: {name: "llama3.1_8b", full_name: "Long Llama"}
hardware:
  platforms:
    nvd: {gpu_model: H100, num_gpus: 8, framework: nemo}
    amd: {gpu_model: MI300X, num_gpus: 8, framework: prim}
training: {data: {seq_length: 2048, micro_batch_size: 1, global_batch_size: 128}}
parallelism:
  mine:
    llama: {nvd: {TP: 1}, amd: {TP: 1}}
    qwen: {nvd: {TP: 1}, amd: {TP: 1}}
    llama_long: {nvd: {TP: 1}, amd: {TP: 1}}
experiment: {methodology: mine}
benchmarking: {enhanced_metrics: {cloud_costs: {nvidia_h100_8gpu_per_hour: 32.0, amd_mi300x_8gpu_per_hour: 24.0}}}
)";

LoadedExperiment configuration(std::string text = k_config) { return load_experiment_text(text, "config.yaml", {}); }

std::string argument(const std::string& name, const std::string& value) {
  return fmt::format("  {} {} {}\n", name, std::string(50 - name.size(), '.'), value);
}

std::string dump(const std::string& arguments) {
  return "------------------------ arguments ------------------------\n" + arguments +
         "-------------------- end of arguments ---------------------\n";
}

std::string sizes(int layers, int hidden) {
  return argument("num_layers", std::to_string(layers)) + argument("hidden_size", std::to_string(hidden));
}

std::string megatron_steps(int count = 8) {
  std::string text;
  for (int step = 1; step <= count; ++step)
    text += fmt::format(
        " iteration {}/ {} | consumed samples: {} | elapsed time per iteration (ms): {} | "
        "learning rate: 3.0E-04 | lm loss: {:.6E} | number of skipped iterations: 0 | "
        "number of nan iterations: 0 |\n",
        step, count, step * 128, 500 + step, 9.0 - 0.1 * step);
  return text;
}

ModelBelief believe(const std::string& text, const std::string& path, const std::string& named = "") {
  const LoadedExperiment loaded = configuration();
  const logs::ReadLog read = logs::read_log_text(text, {});
  const RunResult result = logs::make_result(read, path, {});
  const logs::StatedFacts stated{read.log.facts, read.log.settings};
  ModelBelief belief = identify_model(loaded, {result, stated, path, named, "LLAMA_LOG"});
  static std::string key;  // the entry dies with the configuration
  key = belief.entry == nullptr ? "" : belief.entry->spec.name;
  belief.because = key + "|" + belief.because;
  return belief;
}

std::string model_of(const std::string& text, const std::string& path, const std::string& named = "") {
  const std::string because = believe(text, path, named).because;
  return because.substr(0, because.find('|'));
}

TEST(ModelIdentity, SizesOfTheLogDecide) {
  const std::string qwen = dump(sizes(28, 3584)) + megatron_steps();
  EXPECT_EQ(model_of(qwen, "training_llama.log"), "qwen");
  EXPECT_EQ(model_of(qwen, "a.log", "qwen"), "qwen");
  EXPECT_EQ(model_of(qwen, "a.log", "llama"), "");
  EXPECT_EQ(model_of(dump(sizes(27, 2048)) + megatron_steps(), "training_llama.log"), "");
}

TEST(ModelIdentity, OfTwoModelsWithTheseSizesTheNameDecides) {
  const std::string llama = dump(sizes(32, 4096)) + megatron_steps();
  EXPECT_EQ(model_of(llama, "training_llama.log"), "llama");
  EXPECT_EQ(model_of(llama, "training_llama_long.log"), "llama_long");
  EXPECT_EQ(model_of(llama, "a.log"), "");
  EXPECT_EQ(model_of(llama, "a.log", "llama_long"), "llama_long");
  EXPECT_EQ(model_of(llama, "training_qwen.log"), "") << "the sizes are not Qwen's";
}

TEST(ModelIdentity, ANameThatTheLogContradictsIsTheReason) {
  const std::string other = dump(argument("num_layers", "8")) + megatron_steps();
  EXPECT_EQ(believe(other, "qwen/training_llama.log").because,
            "|its path names llama, but the log states layers 8, not 32");
  EXPECT_EQ(believe(dump(sizes(28, 3584)) + megatron_steps(), "a.log", "llama").because,
            "|LLAMA_LOG names it for llama, but it is of qwen: its sizes (28 layers, hidden size 3584)");
}

TEST(ModelIdentity, APathNamesAModelByWholeWords) {
  const std::string silent = megatron_steps();
  for (const char* path : {"training_mega_llama_bc.log", "llama/train.log", "log_mp_pretrain_Llama-8B.txt"})
    EXPECT_EQ(model_of(silent, path), "llama") << path;
  EXPECT_EQ(model_of(silent, "output/amd/me/qwen2.5_7B-pretrain/train.log"), "qwen");
  for (const char* path : {"llama3.1_70B.log", "llama-70b.log", "codellama.log", "train.log", "qwen2.5_72B.log"})
    EXPECT_EQ(model_of(silent, path), "") << path;
}

TEST(ModelIdentity, ANameOfAnotherModelThatHoldsTheKeyIsNone) {
  const std::string silent = megatron_steps();
  for (const char* path : {"llama_2_7b.log", "code-llama-7b.log", "tiny_llama.log", "qwen_llama.log", "llama-3_8b.log"})
    EXPECT_EQ(model_of(silent, path), "") << path;
  for (const char* path :
       {"20260115_llama_8b.log", "amd_llama_20260115.log", "meta-llama.log", "pretrain-llama-r2.log"})
    EXPECT_EQ(model_of(silent, path), "llama") << path;
}

std::string trainer_log(const std::string& trained) {
  std::string text = fmt::format(
      "***** Running training *****\n  Num examples = 640\n  Num Epochs = 1\n  Total optimization steps = 4\n"
      "  Number of trainable parameters = {}\n",
      trained);
  for (int step = 1; step <= 4; ++step)
    text += fmt::format("{{'loss': {:.2f}, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': {:.2f}}}\n",
                        3.0 - 0.1 * step, 0.25 * step);
  return text;
}

TEST(ModelIdentity, ACountOfTrainedParametersMayExcludeAModel) {
  EXPECT_EQ(model_of(trainer_log("8,030,261,248"), "llama.log"), "llama");
  EXPECT_EQ(model_of(trainer_log("20,971,520"), "llama.log"), "llama") << "of adapters";
  EXPECT_EQ(model_of(trainer_log("6,738,415,616"), "llama.log"), "");
  EXPECT_EQ(model_of(trainer_log("13,015,864,320"), "llama.log"), "");
}

TEST(LogNames, StateFrameworkPlatformAndRank) {
  const LogName old = parse_log_name("training_nvd_mega_llama_bc.log");
  EXPECT_EQ(old.framework, Framework::mega);
  EXPECT_EQ(old.platform, Platform::nvd);
  const LogName primus = parse_log_name("amd/me/exp/logs/pre_trainer/rank-7/debug.log");
  EXPECT_EQ(primus.framework, Framework::prim);
  EXPECT_EQ(primus.training, "amd/me/exp");
  EXPECT_EQ(primus.rank, 7);
  EXPECT_EQ(parse_log_name("amd/me/exp/train.log").training, "amd/me/exp");
  const LogName elastic = parse_log_name("job_1/attempt_2/3/stdout.log");
  EXPECT_EQ(elastic.training, "job_1");
  EXPECT_EQ(elastic.attempt, 2);
  EXPECT_FALSE(elastic.framework);
  EXPECT_EQ(parse_log_name("runs/train_cpu_native_gpt_r2/steps.jsonl").named_by, "train_cpu_native_gpt_r2");
  EXPECT_FALSE(parse_log_name("attempt_x/rank-/a.log").framework);
}

TEST(LogNames, PlatformAndFrameworkStandBeforeTheModel) {
  const std::vector<std::string> models = {"llama", "qwen"};
  EXPECT_FALSE(parse_log_name("llama_amd_epyc.log", models).platform);
  EXPECT_FALSE(parse_log_name("llama_deep_dive.log", models).framework);
  EXPECT_FALSE(parse_log_name("a_deep_dive.log", models).framework);
  EXPECT_EQ(parse_log_name("try7_amd_llama.log", models).platform, Platform::amd);
  EXPECT_EQ(parse_log_name("training_nvd_mega.log", models).framework, Framework::mega);
}

TEST(LogNames, OnlyWhatTellsRunsApartStandsBehindTheModel) {
  ModelEntry entry;
  entry.spec.name = "llama";
  EXPECT_EQ(name_behind_model("training_mega_llama_bc.log", entry), "bc");
  EXPECT_EQ(name_behind_model("primus_training_llama_20260115_101010.log.gz", entry), "");
  EXPECT_EQ(name_behind_model("training_prim_llama_balanced_r2.attempt1.log", entry), "balanced_r2");
  EXPECT_EQ(name_behind_model("log_mp_pretrain_llama3.1_8B-BF16.txt", entry), "");
}

class GatherTest : public ::testing::Test {
 protected:
  void put(const fs::path& path, const std::string& text) { write_file_atomically(folder_.path() / path, text); }
  Gathering gather(const SearchLimits& limits = {}, const std::map<std::string, std::string>& environment = {}) {
    LoadedExperiment loaded = configuration();
    loaded.experiment.paths["primus.installation"] = (folder_.path() / "Primus").string();
    return gather_logs(loaded, {folder_.path() / "output", environment, "", limits});
  }
  ScratchFolder folder_;
};

TEST_F(GatherTest, ASearchEndsAtItsLimit) {
  for (int i = 0; i < 12; ++i) put(fmt::format("output/deep/{}/a.log", i), "nothing\n");
  put("output/training_mega_llama.log", dump(sizes(32, 4096)) + megatron_steps());
  const Gathering found = gather({.entries = 10});
  ASSERT_EQ(found.taken.size(), 1U) << "the folders nearest to the place come first";
  EXPECT_EQ(found.places.front().incomplete, "it has more than 10 entries");
}

TEST_F(GatherTest, FoldersThatAreTooDeepAreSpokenOf) {
  put("output/1/2/3/4/5/6/7/llama.log", megatron_steps());
  EXPECT_EQ(gather().places.front().incomplete, "");
  put("output/1/2/3/4/5/6/7/8/llama.log", megatron_steps());
  const Gathering found = gather();
  EXPECT_EQ(found.places.front().logs, 1U);
  EXPECT_EQ(found.places.front().incomplete, "it has folders more than 7 levels deep");
}

TEST_F(GatherTest, TheFolderOfAFrameworkIsBelievedWhereTheLogIsOpen) {
  put("Primus/output/me/train.log", dump(sizes(28, 3584)) + megatron_steps());
  put("Primus/src/train.log", dump(sizes(28, 3584)) + megatron_steps());
  const Gathering found = gather();
  ASSERT_EQ(found.taken.size(), 1U);
  EXPECT_EQ(found.taken.front().model, "qwen");
  EXPECT_EQ(found.taken.front().named.framework, Framework::prim);
  EXPECT_EQ(found.taken.front().named.framework_from, "paths.primus.installation");
}

TEST_F(GatherTest, AVariableThatNamesNothingIsRefused) {
  EXPECT_THROW(gather({}, {{"LLAMA_LOG", (folder_.path() / "nowhere").string()}}), Error);
  EXPECT_EQ(gather({}, {{"LLAMA_LOG", ""}}).taken.size(), 0U);
}

RunResult extract(const std::string& text, const logs::KnownFacts& given, const NamedFacts& named = {}) {
  const LoadedExperiment loaded = configuration();
  const ScratchFolder folder;
  write_file_atomically(folder.path() / "a.log", text);
  ExtractOptions options;
  options.configuration = &loaded;
  options.known = given;
  options.named = named;
  return extract_runs((folder.path() / "a.log").string(), options).front();
}

std::string assumed(const RunResult& result) {
  std::string text;
  for (const AssumedFact& fact : result.source.assumed.value_or(std::vector<AssumedFact>()))
    text += fact.key + "=" + fact.value + " ";
  return text;
}

bool warns(const RunResult& result, const std::string& words) {
  return std::ranges::any_of(result.warnings,
                             [&](const std::string& warning) { return warning.find(words) != std::string::npos; });
}

logs::KnownFacts of_llama() {
  logs::KnownFacts known;
  known.model = "llama";
  return known;
}

TEST(ConfiguredFactsOfALog, FillWhatIsOpenAndAreListed) {
  const RunResult result = extract(megatron_steps(), of_llama(), {.platform = Platform::nvd});
  EXPECT_EQ(assumed(result),
            "platform=nvd model_info.name=llama model_info.shape=Llama 3.1 8B training_config.sequence_length=2048 "
            "training_config.global_batch_size=128 training_config.num_gpus=8 gpu_info.device_name=H100 "
            "derived.usd_per_hour=32 ");
  EXPECT_EQ(result.training_config.num_gpus, 8);
  EXPECT_FALSE(result.precision) << "no person stated one";
  EXPECT_TRUE(result.derived.usd_per_1e12_tokens);
}

TEST(ConfiguredFactsOfALog, TheLogWinsAndTheContradictionIsAWarning) {
  const RunResult result = extract(
      dump(argument("world_size", "4") + argument("seq_length", "8192") + argument("tensor_model_parallel_size", "4")) +
          megatron_steps(),
      of_llama(), {.platform = Platform::nvd});
  EXPECT_EQ(result.training_config.sequence_length, 8192);
  EXPECT_EQ(result.training_config.num_gpus, 4);
  EXPECT_EQ(result.derived.usd_per_hour, 16.0) << "of four of the eight devices";
  EXPECT_TRUE(
      warns(result, "the sequence length of the log is 8192, but config.yaml has training.data.seq_length 2048"));
  EXPECT_TRUE(warns(result, "the number of devices of the log is 4"));
}

TEST(ConfiguredFactsOfALog, WhatTheLayoutRulesOutIsNotTaken) {
  const RunResult result = extract(dump(argument("tensor_model_parallel_size", "16")) + megatron_steps(), of_llama(),
                                   {.platform = Platform::nvd});
  EXPECT_FALSE(result.training_config.num_gpus);
  EXPECT_TRUE(warns(result,
                    "the number of devices 8 of config.yaml (hardware.platforms.nvd.num_gpus) is not used: the "
                    "layout that the log states has 16 ranks"));
}

TEST(ConfiguredFactsOfALog, AnotherDeviceHasNoPrice) {
  logs::KnownFacts known = of_llama();
  known.device = "A100-SXM-80GB";
  const RunResult result = extract(megatron_steps(), known);
  EXPECT_FALSE(result.derived.usd_per_hour);
  EXPECT_TRUE(warns(result, "the log's device is used, without a price"));
}

TEST(ConfiguredFactsOfALog, AnUnknownPlatformGetsNoDevice) {
  const RunResult result = extract(megatron_steps(), of_llama());
  EXPECT_EQ(assumed(result).find("num_gpus"), std::string::npos);
  EXPECT_TRUE(warns(result, "--platform states it"));
}

TEST(ConfiguredFactsOfALog, APersonsModelThatTheLogExcludesIsRefused) {
  EXPECT_THROW(extract(dump(sizes(28, 3584)) + megatron_steps(), of_llama()), Error);
}

TEST(ConfiguredFactsOfALog, AFamilyHasNoSize) {
  const LoadedExperiment built_in = load_experiment({.path = {}, .overrides = {}, .environment = {}});
  ASSERT_TRUE(is_built_in(built_in));
  const ScratchFolder folder;
  write_file_atomically(folder.path() / "a.log", megatron_steps());
  ExtractOptions options;
  options.configuration = &built_in;
  options.known.model = "llama";
  const RunResult result = extract_runs((folder.path() / "a.log").string(), options).front();
  EXPECT_EQ(result.model_info.name, "llama");
  EXPECT_FALSE(result.model_info.shape);
  EXPECT_FALSE(result.training_config.global_batch_size);
  EXPECT_EQ(assumed(result), "model_info.name=llama ");
}

TEST(StatedFramework, ComesBeforeThatOfItsTrainer) {
  const logs::ReadLog read = logs::read_log_text(dump(sizes(28, 3584)) + megatron_steps(), {});
  logs::KnownFacts known;
  EXPECT_EQ(logs::make_result(read, "a.log", known).framework, Framework::mega);
  known.framework = Framework::prim;
  const RunResult primus = logs::make_result(read, "a.log", known);
  EXPECT_EQ(primus.framework, Framework::prim);
  EXPECT_EQ(primus.platform, Platform::amd) << "Primus runs nowhere else";
  EXPECT_EQ(assumed(primus), "framework=prim ");
  known.framework = Framework::native;
  const RunResult refused = logs::make_result(read, "a.log", known);
  EXPECT_EQ(refused.framework, Framework::mega);
  EXPECT_TRUE(warns(refused, "the log is of mega, but --framework says native"));
}

}  // namespace
}  // namespace tprimat::suite
