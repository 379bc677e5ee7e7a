#include <gtest/gtest.h>

#include <filesystem>

#include "config_case.h"

namespace tprimat::suite {
namespace {

std::string setting(const LoadedExperiment& loaded, const std::string& path) {
  const YamlNode* node = &loaded.settings;
  std::string rest = path;
  while (node != nullptr && !rest.empty()) {
    const size_t dot = rest.find('.');
    node = node->find(rest.substr(0, dot));
    rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
  }
  return node == nullptr ? "absent" : node->scalar + " <- " + node->origin.text();
}

TEST(Layers, StrongerSourcesWin) {
  ConfigCase config{"training: {data: {seq_length: 128}}\n"};
  EXPECT_EQ(setting(config.load(), "training.data.seq_length"), "128 <- config.yaml:1:31");
  EXPECT_EQ(setting(config.load(), "training.data.global_batch_size"), "8 <- built-in default");
  config.environment["CONFIG_TRAINING_DATA_SEQ_LENGTH"] = "64";
  EXPECT_EQ(setting(config.load(), "training.data.seq_length"), "64 <- environment CONFIG_TRAINING_DATA_SEQ_LENGTH");
  config.overrides = {"training.data.seq_length=32"};
  EXPECT_EQ(setting(config.load(), "training.data.seq_length"), "32 <- --set training.data.seq_length");
}

TEST(Layers, NamedThingsOfTheFileReplaceTheDefaults) {
  const LoadedExperiment loaded = ConfigCase{"models: {big: {name: llama3.1_8b}}\n"}.load();
  ASSERT_EQ(loaded.experiment.models.size(), 1u);
  EXPECT_EQ(loaded.experiment.models[0].spec.num_layers, 32);
}

TEST(Layers, AnOverrideChangesOneKeyOfANamedThing) {
  ConfigCase config{""};
  config.text = eight_devices();
  config.overrides = {"parallelism.mine.llama.nvidia={TP: 2, DP: 4}", "models.llama.num_layers=16"};
  const Experiment experiment = config.load().experiment;
  EXPECT_EQ(experiment.strategies.at("mine").at("llama").at(Platform::nvd).tensor, 2);
  EXPECT_EQ(experiment.models[0].spec.num_layers, 16);
  EXPECT_EQ(experiment.models[0].spec.hidden_size, 4096);
}

TEST(Layers, NamedVariablesMeanTheirKeys) {
  ConfigCase config{eight_devices()};
  config.environment = {{"FRAMEWORKS", "native, deepspeed"},     {"TRAIN_ITERS", "77"},
                        {"CONFIG_OUTPUT_DIR", "/x y"},           {"CONFIG_NVD_NUM_GPUS", "8"},
                        {"PRIMUS_PATH", "/opt/primus"},          {"MEGATRON_PATH", "/opt/meg"},
                        {"MEGATRON_DEEPSPEED_PATH", "/opt/mgds"}};
  const Experiment experiment = config.load().experiment;
  EXPECT_EQ(experiment.frameworks, (std::vector<FrameworkChoice>{Framework::native, Framework::deep}));
  EXPECT_EQ(experiment.steps, 77);
  EXPECT_EQ(experiment.output_directory, "/x y");
  EXPECT_EQ(experiment.paths.at("primus.installation"), "/opt/primus");
  EXPECT_EQ(experiment.paths.at("megatron.installation"), "/opt/meg");
  EXPECT_EQ(experiment.paths.at("megatron_deepspeed.installation"), "/opt/mgds");
}

TEST(Layers, ParallelChoosesTheStrategy) {
  ConfigCase config{eight_devices("  cpu: {precision: fp32}\n")};
  config.environment["PARALLEL"] = "mine";
  EXPECT_EQ(config.load().experiment.methodology, "mine");
  config.environment["PARALLEL"] = "other";
  EXPECT_TRUE(mention(config.errors(), "environment PARALLEL: 'other' is not a strategy"));
}

TEST(Layers, TrainItersBeatsBothSpellingsOfTheFile) {
  ConfigCase config{"training: {duration: {max_steps: 500, train_iters: 500}}\n"};
  EXPECT_EQ(config.load().experiment.steps, 500);
  config.environment["TRAIN_ITERS"] = "20";
  EXPECT_EQ(config.load().experiment.steps, 20);
}

TEST(Layers, AFewStepsByHandShortenTheWarmUp) {
  ConfigCase config{"experiment: {name: x}\n", {{"TRAIN_ITERS", "3"}}};
  EXPECT_EQ(config.load().experiment.optimizer.warmup_steps, 0);
  EXPECT_TRUE(
      mention(config.load().warnings, "environment TRAIN_ITERS: training.optimizer.warmup_steps 10 is not below"));
  EXPECT_EQ(setting(config.load(), "training.optimizer.warmup_steps"), "0 <- shortened to fit max_steps");
  config.overrides = {"training.optimizer.warmup_steps=3"};
  EXPECT_TRUE(mention(config.errors(), "--set training.optimizer.warmup_steps: training.optimizer.warmup_steps"));
}

TEST(Layers, AnEmptyVariableIsUnset) {
  ConfigCase config{"", {{"TRAIN_ITERS", ""}, {"CONFIG_TRAINING_DATA_SEQ_LENGTH", ""}}};
  config.text = "experiment: {name: x}\n";
  EXPECT_EQ(config.load().experiment.steps, 60);
}

TEST(Layers, AVariableOfAnAbsentPlatformIsAWarning) {
  const ConfigCase config{"experiment: {name: x}\n", {{"CONFIG_AMD_NUM_GPUS", "4"}}};
  EXPECT_TRUE(mention(config.load().warnings, "environment CONFIG_AMD_NUM_GPUS"));
}

TEST(Layers, AVariableThatNamesNoKeyIsAnError) {
  const ConfigCase config{"experiment: {name: x}\n", {{"CONFIG_TRAINING_DATA_SEQ_LENGHT", "1"}, {"CONFIG_XYZZY", "1"}}};
  const std::vector<Problem> errors = config.errors();
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_TRUE(mention(errors, "did you mean CONFIG_TRAINING_DATA_SEQ_LENGTH?"));
  EXPECT_TRUE(mention(errors, "CONFIG_OUTPUT_DIR"));
}

TEST(Layers, EverySpellingHasItsVariable) {
  ConfigCase config{eight_devices()};
  config.environment["CONFIG_PARALLELISM_MINE_LLAMA_NVIDIA_TP"] = "2";
  config.environment["CONFIG_PARALLELISM_MINE_LLAMA_NVD_DATA_PARALLEL_SIZE"] = "4";
  EXPECT_EQ(config.load().experiment.strategies.at("mine").at("llama").at(Platform::nvd).data, 4);
}

TEST(Layers, OtherPeoplesVariablesAreLeftAlone) {
  const ConfigCase config{"experiment: {name: x}\n",
                          {{"PATH", "/bin"}, {"HF_TOKEN", "hf_secret"}, {"MYCONFIG_X", "1"}}};
  EXPECT_TRUE(config.errors().empty());
  EXPECT_EQ(print_yaml(config.load().settings, true).find("hf_secret"), std::string::npos);
}

TEST(Layers, VariablesExpandEverywhere) {
  ConfigCase config{
      "experiment: {name: \"a-${WHO}-${NONE:-b}\", description: '${A:-${B:-deep}}'}\n"
      "training: {data: {seq_length: \"${SL:-128}\"}}\n",
      {{"WHO", "${NOT_AGAIN}"}}};
  const Experiment experiment = config.load().experiment;
  EXPECT_EQ(experiment.name, "a-${NOT_AGAIN}-b");
  EXPECT_EQ(experiment.description, "deep");
  EXPECT_EQ(experiment.sequence_length, 128);
  config.environment["SL"] = "long";
  EXPECT_TRUE(mention(config.errors(), "training.data.seq_length must be a whole number, got 'long'"));
}

TEST(Layers, AnOverriddenReferenceNeedNotResolve) {
  ConfigCase config{"experiment: {name: \"${TPRIMAT_UNSET}\"}\n"};
  EXPECT_EQ(config.errors().size(), 1u);
  config.overrides = {"experiment.name=x"};
  EXPECT_TRUE(config.errors().empty());
}

TEST(Layers, BadOverridesAreNamed) {
  const auto error_of = [](const std::string& text) {
    return print(ConfigCase{"experiment: {name: x}\n", {}, {text}}.errors());
  };
  EXPECT_EQ(
      error_of("training.data.seq_lenght=1"),
      "--set training.data.seq_lenght: unknown key 'seq_lenght' in training.data\n  did you mean 'seq_length'?\n");
  EXPECT_EQ(error_of("models.lama.num_layers=1"),
            "--set models.lama.num_layers: there is no 'lama' here\n  did you mean 'llama'?\n");
  EXPECT_NE(error_of("nothing").find("must be KEY=VALUE"), std::string::npos);
  EXPECT_NE(error_of("training=5").find("training must be a section"), std::string::npos);
  EXPECT_NE(error_of("a..b=5").find("unknown key 'a'"), std::string::npos);
  EXPECT_NE(error_of("models={").find("every { and [ is closed"), std::string::npos);
}

TEST(Exports, RepeatTheConfiguration) {
  for (const std::string& text : {std::string(default_config_text()), eight_devices()}) {
    ConfigCase config{text};
    const LoadedExperiment first = config.load();
    for (const ExportedVariable& variable : list_exports(first.settings))
      config.environment[variable.name] = variable.value;
    const LoadedExperiment second = config.load();
    EXPECT_EQ(print_yaml(first.settings, false), print_yaml(second.settings, false));
  }
}

TEST(Settings, ArePrintedAsAConfigurationThatLoadsTheSame) {
  for (const std::string& text : {std::string(default_config_text()), eight_devices()}) {
    const std::string printed = print_yaml(ConfigCase{text}.load().settings, true);
    EXPECT_EQ(print_yaml(ConfigCase{printed}.load().settings, false),
              print_yaml(ConfigCase{text}.load().settings, false));
  }
}

TEST(KeyPaths, TakeEverySpelling) {
  EXPECT_EQ(canonical_key_path("hardware.platforms.nvidia.num_devices"), "hardware.platforms.nvd.num_gpus");
  EXPECT_EQ(canonical_key_path("parallelism.x.y.rocm.TP"), "parallelism.x.y.amd.tensor_model_parallel_size");
  EXPECT_THROW(canonical_key_path("training.dat"), Error);
}

}  // namespace
}  // namespace tprimat::suite
