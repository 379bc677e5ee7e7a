#include "config/experiment.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "config_case.h"
#include "example_data.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

const fs::path k_example = fs::path(TPRIMAT_SHARED_DATA) / "config" / "example_config.yaml";

class Example : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_EXAMPLE_DATA(k_example);
    config_.text = read_file(k_example);
  }
  ConfigCase config_;
};

TEST_F(Example, KeepsTheMeaningOfEveryKey) {
  const Experiment experiment = config_.load().experiment;
  EXPECT_EQ(experiment.name, "tprimat_benchmark");
  EXPECT_EQ(experiment.version, "2.0");
  EXPECT_EQ(experiment.methodology, "maximum_performance");
  ASSERT_EQ(experiment.models.size(), 2u);
  const ModelEntry& llama = experiment.models[0];
  EXPECT_EQ(llama.spec.name, "llama");
  EXPECT_EQ(llama.spec.full_name, "Llama 3.1 8B");
  EXPECT_EQ(llama.given_name, "llama3.1_8b");
  EXPECT_EQ(llama.spec.ffn_hidden_size, 14336);
  EXPECT_EQ(llama.spec.num_key_value_heads, 8);
  EXPECT_EQ(llama.dataset, "/data/llama_dataset_text_document");
  EXPECT_EQ(llama.tokenizer_path, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(experiment.models[1].dataset, "synthetic");
  EXPECT_TRUE(experiment.models[1].spec.qkv_bias);
  EXPECT_EQ(experiment.optimizer.type, "adamw");
  EXPECT_DOUBLE_EQ(experiment.optimizer.learning_rate, 3e-4);
  EXPECT_DOUBLE_EQ(experiment.optimizer.min_learning_rate, 3e-5);
  EXPECT_EQ(experiment.optimizer.warmup_steps, 50);
  EXPECT_EQ(experiment.steps, 500);
  EXPECT_EQ(experiment.global_batch_size, 128);
  EXPECT_EQ(experiment.strategies.size(), 5u);
  EXPECT_EQ(experiment.paths.at("primus.installation"), "/workspace/Primus");
  EXPECT_EQ(experiment.output_directory, "./output");
  EXPECT_EQ(experiment.performance_metrics.size(), 2u);
}

TEST_F(Example, SetsThePlatformsUp) {
  const Experiment experiment = config_.load().experiment;
  const PlatformSetup& nvd = experiment.platforms.at(Platform::nvd);
  EXPECT_EQ(nvd.device_model, "H100");
  EXPECT_EQ(nvd.num_devices, 8);
  EXPECT_EQ(nvd.framework, Framework::nemo);
  EXPECT_EQ(nvd.precision, Precision::fp8);
  EXPECT_TRUE(nvd.activation_checkpointing);
  EXPECT_EQ(nvd.usd_per_hour, 32.0);
  EXPECT_EQ(nvd.tdp_watts, 700.0);
  EXPECT_TRUE(nvd.peak_flops_override.empty()) << "they contradict the catalogue";
  EXPECT_EQ(nvd.settings.cuda_alloc_conf, "expandable_segments:True");
  EXPECT_EQ(experiment.platforms.at(Platform::amd).framework, Framework::prim);
  EXPECT_EQ(experiment.platforms.at(Platform::amd).usd_per_hour, 24.0);
}

TEST_F(Example, WarnsOfWhatIsDoubtful) {
  const std::vector<Problem> warnings = config_.load().warnings;
  for (const char* part : {"H100 SXM 80 GB bf16 494 (989), fp16 494 (989), fp8 989 (1979), half of it;",
                           "MI300X bf16 653 (1307), fp16 653 (1307), fp8 653 (2614)", "precision fp8 against bf16",
                           "activation_checkpointing true against false"})
    EXPECT_TRUE(mention(warnings, part)) << part << "\n" << print(warnings);
}

TEST_F(Example, MakesEveryTraining) {
  const Experiment experiment = config_.load().experiment;
  for (const auto& [strategy, by_model] : experiment.strategies)
    for (const auto& [model, by_platform] : by_model)
      for (const auto& [platform, layout] : by_platform) {
        const TrainSpec spec = make_train_spec(experiment, platform, model, strategy);
        EXPECT_EQ(spec.parallel.ranks(), 8);
        EXPECT_EQ(spec.gradient_accumulation_steps() * spec.parallel.data, 128);
      }
  EXPECT_EQ(make_train_spec(experiment, Platform::nvd, "qwen", "maximum_performance").parallel.pipeline, 2);
}

TEST_F(Example, IsRefusedAsIdenticalWithEveryDifference) {
  config_.environment["PARALLEL"] = "identical_config";
  const std::vector<Problem> errors = config_.errors();
  EXPECT_EQ(errors.size(), 4u) << print(errors);
  for (const char* part :
       {"precision differs", "activation_checkpointing differs", "fp8_hybrid differs", "fp8_param differs"})
    EXPECT_TRUE(mention(errors, part)) << part;
}

TEST_F(Example, FourDevicesAreRefusedWithALayoutThatPasses) {
  config_.environment["CONFIG_NVD_NUM_GPUS"] = "4";
  const std::vector<Problem> errors = config_.errors();
  EXPECT_EQ(errors.size(), 2u) << print(errors);
  EXPECT_TRUE(mention(errors, "a valid layout: {TP: 4, PP: 1, DP: 1, GA: 128}"));
}

TEST(Configs, EveryOneInTheFolderIsSound) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TPRIMAT_SOURCE_DIR) / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ConfigCase config{read_file(entry.path())};
    EXPECT_TRUE(config.errors().empty()) << entry.path() << "\n" << print(config.errors());
    EXPECT_TRUE(config.errors().empty() && config.load().warnings.empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3u);
}

TEST(Default, IsTwoSmallModelsOnOneCpu) {
  const Experiment experiment = ConfigCase{std::string(default_config_text())}.load().experiment;
  ASSERT_EQ(experiment.models.size(), 2u);
  ASSERT_EQ(experiment.platforms.size(), 1u);
  for (const char* name : {"llama", "qwen"}) {
    const TrainSpec spec = make_train_spec(experiment, Platform::cpu, name, experiment.methodology);
    const int64_t parameters = count_parameters(spec.model).total();
    EXPECT_GE(parameters, 10'000'000);
    EXPECT_LE(parameters, 30'000'000);
    EXPECT_EQ(spec.model.head_dim, 64);
    EXPECT_EQ(spec.precision, Precision::bf16);
    EXPECT_DOUBLE_EQ(spec.optimizer.min_learning_rate, spec.optimizer.learning_rate / 10);
  }
  EXPECT_TRUE(experiment.find_model_entry("qwen")->spec.tied_embeddings);
  EXPECT_TRUE(experiment.find_model_entry("qwen")->spec.qkv_bias);
}

TEST(Default, TakesAnotherPrecisionInOnePlace) {
  const ConfigCase config{"training: {precision: {default: fp32}}\n"};
  EXPECT_EQ(config.load().experiment.platforms.at(Platform::cpu).precision, Precision::fp32);
}

TEST(Choices, AreListedWhenOneIsUnknown) {
  const Experiment experiment = ConfigCase{eight_devices()}.load().experiment;
  const auto message_of = [&](Platform platform, const std::string& model, const std::string& strategy) -> std::string {
    try {
      make_train_spec(experiment, platform, model, strategy);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message_of(Platform::nvd, "lama", "mine"),
            "'lama' is not a model in this configuration; the choices are llama\n  did you mean 'llama'?");
  EXPECT_EQ(message_of(Platform::cpu, "llama", "mine"),
            "'cpu' is not a platform in this configuration; the choices are nvd, amd");
  EXPECT_EQ(message_of(Platform::amd, "llama", "other"),
            "'other' is not a strategy for llama on amd in this configuration; the choices are mine");
  EXPECT_EQ(message_of(Platform::amd, "llama", "mine"), "no error");
}

TEST(Prices, AreScaledToTheDevicesInUse) {
  const LoadedExperiment loaded =
      ConfigCase{eight_devices("benchmarking: {enhanced_metrics: {cloud_costs: {amd_mi300x_4gpu_per_hour: 10}}}\n")}
          .load();
  EXPECT_EQ(loaded.experiment.platforms.at(Platform::amd).usd_per_hour, 20.0);
  EXPECT_TRUE(mention(loaded.warnings, "the price is for 4 devices, but the training uses 8"));
  EXPECT_EQ(loaded.experiment.platforms.at(Platform::nvd).usd_per_hour, std::nullopt);
}

TEST(Prices, OfADeviceThatIsNotHereAreAWarning) {
  const LoadedExperiment loaded =
      ConfigCase{eight_devices("benchmarking: {enhanced_metrics: {cloud_costs: {nvidia_b200_8gpu_per_hour: 50}}}\n")}
          .load();
  EXPECT_TRUE(mention(loaded.warnings, "no configured platform has that device"));
}

TEST(Models, AContradictionToTheCatalogueIsAWarning) {
  ConfigCase config{eight_devices()};
  config.overrides = {"models.llama.num_layers=16", "models.llama.num_parameters=8.0e9"};
  const LoadedExperiment loaded = config.load();
  EXPECT_TRUE(
      mention(loaded.warnings, "models.llama.num_layers is 16, but the model catalogue has 32 for Llama 3.1 8B"));
  EXPECT_TRUE(mention(loaded.warnings, "models.llama.num_parameters is 8e+09, but the shape has"));
}

TEST(Models, AUserMayBringAShape) {
  const LoadedExperiment loaded =
      ConfigCase{
          "models:\n  mine: {num_layers: 2, hidden_size: 128, ffn_hidden_size: 256, num_attention_heads: 4, "
          "num_query_groups: 2, vocab_size: 1000, max_position_embeddings: 512, norm: layer, mlp: gelu, "
          "position: learned, dataset_path: /d/x}\n"}
          .load();
  const ModelEntry& model = loaded.experiment.models.at(0);
  EXPECT_EQ(model.spec.head_dim, 32);
  EXPECT_EQ(model.spec.num_key_value_heads, 2);
  EXPECT_EQ(model.spec.norm, NormKind::layer);
  EXPECT_EQ(model.spec.position, PositionKind::learned);
  EXPECT_EQ(model.dataset, "/d/x");
}

TEST(Platforms, AnUnknownDeviceIsAWarningAndHasNoMemory) {
  ConfigCase config{eight_devices()};
  config.overrides = {"hardware.platforms.nvd.gpu_model=H999"};
  const LoadedExperiment loaded = config.load();
  EXPECT_TRUE(mention(loaded.warnings, "'H999' is not in the hardware catalogue"));
  EXPECT_EQ(loaded.experiment.platforms.at(Platform::nvd).memory_per_device_gb, std::nullopt);
}

TEST(Memory, AWarningStatesTheMargin) {
  ConfigCase config{eight_devices()};
  config.overrides = {"parallelism.mine.llama.nvd={TP: 1, DP: 8}"};
  EXPECT_TRUE(mention(config.load().warnings, "144.54 GB of 80.00 GB"));
}

TEST(Layouts, DataParallelFollowsFromTheDevices) {
  ConfigCase config{eight_devices()};
  config.text.replace(config.text.find("{TP: 4, DP: 2}"), 14, "{TP: 2, SP: true}");
  const ParallelSpec layout = make_train_spec(config.load().experiment, Platform::amd, "llama", "mine").parallel;
  EXPECT_EQ(layout.data, 4);
  EXPECT_TRUE(layout.sequence_parallel);
}

TEST(Layouts, AnotherStrategyThatAnOverrideBreaksIsAWarningUntilItIsUsed) {
  ConfigCase config{eight_devices()};
  config.text.insert(config.text.find("platform_optimizations"),
                     "  four:\n    llama: {nvidia: {TP: 4}, amd: {TP: 4}}\n");
  config.text.replace(config.text.find("nvidia: {TP: 4}, amd: {TP: 4}"), 29, "nvidia: {TP: 4, DP: 2}");
  config.overrides = {"hardware.platforms.nvd.num_gpus=4", "parallelism.mine.llama.nvd.DP=1"};
  const LoadedExperiment loaded = config.load();
  EXPECT_TRUE(mention(loaded.warnings, "parallelism.four.llama.nvd cannot run"));
  EXPECT_THROW(make_train_spec(loaded.experiment, Platform::nvd, "llama", "four"), Error);
}

TEST(WarmupBound, IsAutoOrANumber) {
  ConfigCase config{"benchmarking: {warmup: 3}\n"};
  EXPECT_EQ(config.load().experiment.fixed_warmup_steps, 3);
  config.text = "benchmarking: {warmup: auto}\n";
  EXPECT_EQ(config.load().experiment.fixed_warmup_steps, std::nullopt);
}

}  // namespace
}  // namespace tprimat::suite
