#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "config/values.h"
#include "config_case.h"
#include "example_data.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// A file of the older scripts' form, in short.
std::string older_file(const std::string& more = "") {
  return R"(hardware:
  platforms:
    nvidia: {gpu_model: "H100", num_gpus: 8, software_stack: "cuda", framework: "nemo"}
    amd: {gpu_model: "MI300X", num_gpus: 8, software_stack: "rocm", framework: "primus"}
models:
  llama: {name: "llama3.1_8b", primus_recipe: "llama3.1_8B-BF16-pretrain.yaml", dataset_path: "/own/llama"}
  qwen: {name: "qwen2.5_7b", prim_config: "examples/qwen2.5_7B-BF16-pretrain.yaml"}
training:
  data: {global_batch_size: 128, micro_batch_size: 1, seq_length: 2048, dataset_path: "/data/common",
         tokenizer_path: "meta-llama/Llama-3.1-8B"}
  duration: {max_steps: 10, train_iters: 10}
parallelism:
  minimal_communication:
    llama: {nvidia: {TP: 1}, amd: {TP: 1}}
    qwen: {nvidia: {TP: 1}, amd: {TP: 1}}
  memory_optimized:
    llama: {nvidia: {TP: 8}, amd: {TP: 2}}
    qwen: {nvidia: {TP: 8}, amd: {TP: 2}}
benchmarking:
  output: {filename_format: "benchmark_{software_stack}_{framework}_{model}.json"}
  metrics: {stability: ["min_step_time"], system: ["device_name"]}
  enhanced_metrics: {enabled: true}
  warmup: {skip_first_n_steps: 1}
  runs: {default_num_runs: 2, recommended_num_runs: 3, cooldown_seconds: 10}
comparison:
  metrics_to_compare: ["mfu_percent"]
  plots: {dpi: 300, filename: "compare.png"}
paths:
  nemo: {data_dir: "/data", checkpoint_dir: "/checkpoints"}
  tprimat: {base_dir: ".", output_dir: "./results", logs_dir: "./results"}
logging:
  console: {level: "INFO"}
  file: {enabled: false}
profiling:
  enabled: true
  schedule: {wait: 1}
frameworks:
  deepspeed: {description: "ZeRO", supported_platforms: ["nvidia", "amd"], amd: {enabled: true, cpu_offload: true}}
)" + more;
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(OlderFile, KeepsItsMeaning) {
  const Experiment experiment = ConfigCase{older_file()}.load().experiment;
  EXPECT_EQ(experiment.fixed_warmup_steps, 1);
  EXPECT_EQ(experiment.runs, 2);
  EXPECT_EQ(experiment.cool_down_seconds, 10);
  EXPECT_TRUE(experiment.profiling);
  EXPECT_FALSE(experiment.logging);
  EXPECT_EQ(experiment.output_directory, "./results");
  EXPECT_EQ(experiment.models[0].primus_config, "llama3.1_8B-BF16-pretrain.yaml");
  EXPECT_EQ(experiment.models[1].primus_config, "examples/qwen2.5_7B-BF16-pretrain.yaml");
}

TEST(OlderFile, GivesItsDataToModelsThatStateNone) {
  const LoadedExperiment loaded = ConfigCase{older_file()}.load();
  EXPECT_EQ(loaded.experiment.models[0].dataset, "/own/llama");
  EXPECT_EQ(loaded.experiment.models[1].dataset, "/data/common");
  EXPECT_EQ(loaded.experiment.models[1].tokenizer_path, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(loaded.experiment.models[1].spec.full_name, "Qwen 2.5 7B") << "a tokenizer of all models names none";
  EXPECT_EQ(origin_of(loaded.settings, "models.qwen.dataset_path"), "training.data.dataset_path");
}

TEST(OlderFile, NamesEveryOlderKeyInOneOfTwoWarnings) {
  const std::vector<Problem> warnings = ConfigCase{older_file()}.load().warnings;
  for (const char* part :
       {"older keys are read: ", "models (llama.primus_recipe as llama.primus_config",
        "runs.cooldown_seconds as cool_down_seconds", "(tprimat.output_dir as benchmarking.output.directory)",
        "as docs/config.md says: comparison, logging.console, profiling.schedule, frameworks.*.amd, ",
        "benchmarking.metrics (stability, system)", "paths.nemo (data_dir, checkpoint_dir)",
        "frameworks.* (supported_platforms)"})
    EXPECT_TRUE(mention(warnings, part)) << part << "\n" << print(warnings);
  EXPECT_EQ(std::ranges::count_if(warnings, [](const Problem& each) { return mention({each}, "older keys are read"); }),
            1);
}

TEST(OlderFile, HidesNoTypo) {
  const std::pair<const char*, const char*> k_typos[] = {{"skip_first_n_steps", "skip_first_n_step"},
                                                         {"cooldown_seconds", "cooldown_second"},
                                                         {"dpi:", "dip:"},
                                                         {"plots:", "plot:"},
                                                         {"checkpoint_dir", "checkpiont_dir"},
                                                         {"output_dir:", "outptu_dir:"},
                                                         {"supported_platforms", "suported_platforms"},
                                                         {"cpu_offload", "cpu_ofload"},
                                                         {"deepspeed:", "deepsped:"},
                                                         {"stability", "stabilty"},
                                                         {"wait:", "wiat:"},
                                                         {"logging:", "loging:"},
                                                         {"prim_config", "prim_conf"}};
  for (const auto& [word, typo] : k_typos) {
    const std::vector<Problem> errors = ConfigCase{changed(older_file(), word, typo)}.errors();
    const std::string name = std::string(typo).substr(0, std::string(typo).find(':'));
    EXPECT_TRUE(mention(errors, "unknown key '" + name + "'")) << typo << "\n" << print(errors);
  }
}

TEST(OlderFile, SaysWhereASectionIsExpected) {
  const std::vector<Problem> console =
      ConfigCase{changed(older_file(), "console: {level: \"INFO\"}", "console: [1, 2]")}.errors();
  EXPECT_TRUE(mention(console, "logging.console must be a section")) << print(console);
  EXPECT_TRUE(mention(console, "its keys are enabled, level, colored")) << print(console);
  EXPECT_FALSE(mention(console, "did you mean")) << print(console);
  const std::vector<Problem> list = ConfigCase{changed(older_file(), "[\"mfu_percent\"]", "{a: 1}")}.errors();
  EXPECT_TRUE(mention(list, "comparison.metrics_to_compare must be a value, not a section")) << print(list);
}

TEST(OlderFile, IsRefusedWhereOneOfItsKeysHasNoValueOfItsKind) {
  EXPECT_TRUE(mention(ConfigCase{changed(older_file(), "skip_first_n_steps: 1", "skip_first_n_steps: soon")}.errors(),
                      "benchmarking.warmup must be auto or a number"));
  EXPECT_TRUE(mention(ConfigCase{changed(older_file(), "default_num_runs: 2", "default_num_runs: {a: 1}")}.errors(),
                      "benchmarking.runs.default_num_runs must be a value, not a section"));
  EXPECT_FALSE(ConfigCase{"benchmarking.runs.default_num_runs: 2\n"}.errors().empty()) << "a key with dots";
  EXPECT_TRUE(mention(ConfigCase{"comparison: {}\nlogging:\nprofiling: {schedule: }\n"}.load().warnings,
                      "docs/config.md says: comparison, logging, profiling.schedule"));
  EXPECT_FALSE(ConfigCase{"comparison: 3\n"}.errors().empty());
}

TEST(OlderFile, IsRefusedWhereBothNamesOfAKeyDisagree) {
  const std::vector<Problem> errors = ConfigCase{older_file("experiment: {profiling: false}\n")}.errors();
  EXPECT_TRUE(mention(errors, "'profiling.enabled' is an older name of experiment.profiling, which is already set"))
      << print(errors);
  EXPECT_TRUE(ConfigCase{older_file("experiment: {profiling: true}\n")}.errors().empty());
}

TEST(OlderFile, LeavesTheErrorOfASectionThatIsNone) {
  EXPECT_TRUE(mention(ConfigCase{older_file("experiment: 5\n")}.errors(), "experiment must be a section"));
}

TEST(Methodology, OfAnOlderFileIsTheScriptsDefault) {
  const LoadedExperiment loaded = ConfigCase{older_file()}.load();
  EXPECT_EQ(loaded.experiment.methodology, "minimal_communication");
  EXPECT_TRUE(mention(loaded.warnings, "experiment.methodology is not stated: using minimal_communication"));
  ConfigCase chosen{older_file()};
  chosen.environment["PARALLEL"] = "memory_optimized";
  EXPECT_EQ(chosen.load().experiment.methodology, "memory_optimized");
  EXPECT_FALSE(mention(chosen.load().warnings, "is not stated"));
}

TEST(Methodology, IsTheOnlyStrategyWhereItIsNotStated) {
  const std::string text = changed(eight_devices(), "experiment: {methodology: \"mine\"}\n", "");
  const LoadedExperiment loaded = ConfigCase{text}.load();
  EXPECT_EQ(loaded.experiment.methodology, "mine");
  EXPECT_TRUE(mention(loaded.warnings, "experiment.methodology is not stated: using mine, the only strategy"));
  EXPECT_EQ(origin_of(loaded.settings, "experiment.methodology"), "the only strategy");
}

TEST(Methodology, OfSeveralIsNotGuessed) {
  const std::string text = changed(eight_devices(), "experiment: {methodology: \"mine\"}\n", "");
  const std::vector<Problem> errors =
      ConfigCase{changed(text, "  mine:", "  other: {llama: {nvidia: {TP: 8}, amd: {TP: 8}}}\n  mine:")}.errors();
  EXPECT_EQ(errors.size(), 1u) << print(errors);
  EXPECT_TRUE(mention(errors, "experiment.methodology is missing; the strategies are other, mine")) << print(errors);
}

TEST(Methodology, OfOneDeviceStaysSingle) {
  const Experiment experiment = ConfigCase{"parallelism: {mine: {llama: {cpu: {TP: 1}}}}\n"}.load().experiment;
  EXPECT_EQ(experiment.methodology, "single");
}

TEST(Layout, ThatCannotRunKeepsNoOtherFromRunning) {
  const LoadedExperiment loaded = ConfigCase{older_file()}.load();
  EXPECT_TRUE(mention(loaded.warnings, "memory_optimized.qwen.nvd cannot run: TP 8 does not divide the 28"))
      << print(loaded.warnings);
  EXPECT_EQ(make_train_spec(loaded.experiment, Platform::nvd, "llama", "memory_optimized").parallel.tensor, 8);
  EXPECT_THROW(make_train_spec(loaded.experiment, Platform::nvd, "qwen", "memory_optimized"), Error);
}

TEST(Layout, ThatContradictsItsAccumulationIsRefusedWhenItRuns) {
  const std::string text =
      changed(eight_devices(), "  mine:", "  other: {llama: {nvidia: {TP: 8, GA: 7}, amd: {TP: 8}}}\n  mine:");
  const Experiment experiment = ConfigCase{text}.load().experiment;
  EXPECT_NO_THROW(make_train_spec(experiment, Platform::amd, "llama", "other"));
  EXPECT_THROW(make_train_spec(experiment, Platform::nvd, "llama", "other"), Error);
}

TEST(Warmup, OfTheDefaultIsShortenedAndAStatedOneIsNot) {
  const LoadedExperiment loaded = ConfigCase{"training: {duration: {max_steps: 10}}\n"}.load();
  EXPECT_EQ(loaded.experiment.optimizer.warmup_steps, 1);
  EXPECT_TRUE(mention(loaded.warnings, "warmup_steps 10 is not below max_steps 10: using 1 instead"));
  EXPECT_TRUE(mention(ConfigCase{"training: {duration: {max_steps: 10}, optimizer: {warmup_steps: 50}}\n"}.errors(),
                      "warmup_steps 50 is not below max_steps 10"));
}

// Peaks.

std::string with_peak(const std::string& device, const std::string& more = "") {
  return eight_devices("benchmarking: {enhanced_metrics: {hardware_specs: {" + device +
                       ": {peak_tflops_bf16: 494.0e12}}}}\n" + more);
}

TEST(Peaks, ThatContradictTheCatalogueAreNotUsed) {
  const LoadedExperiment loaded = ConfigCase{with_peak("nvidia_h100")}.load();
  EXPECT_TRUE(loaded.experiment.platforms.at(Platform::nvd).peak_flops_override.empty());
  EXPECT_TRUE(mention(loaded.warnings, "H100 SXM 80 GB bf16 494 (989), half of it"));
  EXPECT_TRUE(mention(loaded.warnings, "hardware.peak_source: mine the stated ones"));
}

TEST(Peaks, AreUsedWhereTheConfigurationInsists) {
  ConfigCase config{with_peak("nvidia_h100")};
  config.overrides = {"hardware.peak_source=mine"};
  const LoadedExperiment loaded = config.load();
  const PlatformSetup& nvd = loaded.experiment.platforms.at(Platform::nvd);
  EXPECT_EQ(nvd.peak_origin, PeakOrigin::mine);
  EXPECT_EQ(nvd.peak_flops_override.at(Precision::bf16), 494e12);
  EXPECT_TRUE(mention(loaded.warnings, "MFU uses the stated ones, because hardware.peak_source is mine"));
  config.overrides = {"hardware.peak_source=yours"};
  EXPECT_TRUE(mention(config.errors(), "hardware.peak_source must be one of catalogue, mine, got 'yours'"));
}

TEST(Peaks, OfOneDeviceAreStatedOnce) {
  const auto with_both = [](const std::string& second) {
    return ConfigCase{
        eight_devices("benchmarking: {enhanced_metrics: {hardware_specs: {nvidia_h100: "
                      "{peak_tflops_bf16: 989.0e12}, nvidia_h100_sxm: {" +
                      second + "}}}}\n")};
  };
  const std::vector<Problem> errors = with_both("peak_tflops_bf16: 990.0e12").errors();
  EXPECT_TRUE(mention(errors,
                      "hardware_specs.nvidia_h100 and "
                      "benchmarking.enhanced_metrics.hardware_specs.nvidia_h100_sxm are figures of the same "
                      "device"))
      << print(errors);
  EXPECT_TRUE(with_both("peak_tflops_bf16: 989.0e12").errors().empty());
}

TEST(Peaks, OfAnUnknownDeviceAreUsed) {
  const LoadedExperiment loaded =
      ConfigCase{changed(with_peak("nvidia_x9"), "gpu_model: \"H100\"", "gpu_model: \"X9\"")}.load();
  EXPECT_EQ(loaded.experiment.platforms.at(Platform::nvd).peak_flops_override.at(Precision::bf16), 494e12);
}

// Variables of the older scripts' config_to_shell.py.

TEST(OlderVariables, SetTheirKeys) {
  ConfigCase config{older_file()};
  config.environment = {{"CONFIG_TRAIN_ITERS", "40"},
                        {"CONFIG_MAX_STEPS", "40"},
                        {"CONFIG_SEQ_LENGTH", "1024"},
                        {"CONFIG_LEARNING_RATE", "1e-4"},
                        {"CONFIG_WARMUP_STEPS", "7"},
                        {"CONFIG_METHODOLOGY", "memory_optimized"},
                        {"CONFIG_NVIDIA_NUM_GPUS", "8"},
                        {"CONFIG_AMD_PRECISION", "fp8"},
                        {"CONFIG_NVIDIA_ACT_CHECKPOINT", "true"},
                        {"CONFIG_LLAMA_NVIDIA_TP", "4"},
                        {"CONFIG_LLAMA_NVIDIA_DP", "2"},
                        {"CONFIG_LLAMA_NVIDIA_GACC", "64"},
                        {"CONFIG_LLAMA_LOG_FILE", "training_llama.log"},
                        {"CONFIG_PRIMUS_PATH", "/opt/Primus"}};
  const LoadedExperiment loaded = config.load();
  const Experiment& experiment = loaded.experiment;
  EXPECT_EQ(experiment.steps, 40);
  EXPECT_EQ(experiment.sequence_length, 1024);
  EXPECT_EQ(experiment.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(experiment.optimizer.warmup_steps, 7);
  EXPECT_EQ(experiment.methodology, "memory_optimized");
  EXPECT_EQ(experiment.platforms.at(Platform::amd).precision, Precision::fp8);
  EXPECT_EQ(experiment.platforms.at(Platform::nvd).recompute, Recompute::full);
  EXPECT_EQ(experiment.paths.at("primus.installation"), "/opt/Primus");
  EXPECT_EQ(make_train_spec(experiment, Platform::nvd, "llama", "memory_optimized").parallel.tensor, 4);
  EXPECT_TRUE(mention(loaded.warnings, "environment CONFIG_LLAMA_LOG_FILE: has no effect"));
}

TEST(OlderVariables, AreWeakerThanTrainItersAndNeverContradictTheLongForm) {
  ConfigCase config{older_file()};
  config.environment = {{"CONFIG_TRAIN_ITERS", "40"}, {"TRAIN_ITERS", "30"}};
  EXPECT_EQ(config.load().experiment.steps, 30);
  config.environment = {{"CONFIG_TRAIN_ITERS", "40"}, {"CONFIG_TRAINING_DURATION_MAX_STEPS", "30"}};
  EXPECT_TRUE(mention(config.errors(), "unset one of them")) << print(config.errors());
  config.environment = {{"CONFIG_TRAIN_ITER", "40"}};
  EXPECT_TRUE(mention(config.errors(), "did you mean CONFIG_TRAIN_ITERS?")) << print(config.errors());
  config.environment = {{"CONFIG_MISTRAL_AMD_TP", "2"}};
  EXPECT_TRUE(mention(config.errors(), "matches no configuration key"));
}

// A layout that is set but not run would go unnoticed.
TEST(OlderVariables, SetTheLayoutOfTheStrategyThatRuns) {
  ConfigCase config{changed(older_file(), "qwen: {nvidia: {TP: 8}", "qwen: {nvidia: {TP: 4}")};
  config.environment = {{"CONFIG_LLAMA_NVIDIA_TP", "4"}, {"CONFIG_LLAMA_NVIDIA_DP", "2"}};
  config.overrides = {"experiment={methodology: memory_optimized}"};
  EXPECT_EQ(make_train_spec(config.load().experiment, Platform::nvd, "llama", "memory_optimized").parallel.tensor, 4);

  config.overrides = {"experiment.methodology=memory_optimized", "frameworks.native.strategy=minimal_communication"};
  EXPECT_TRUE(mention(config.errors(),
                      "environment CONFIG_LLAMA_NVIDIA_TP, CONFIG_LLAMA_NVIDIA_DP: sets the layout of "
                      "the strategy 'memory_optimized' alone, but frameworks.native.strategy is "
                      "'minimal_communication'"))
      << print(config.errors());
  config.overrides = {"experiment.methodology=memory_optimized", "frameworks.native.strategy=memory_optimized"};
  EXPECT_TRUE(config.errors().empty()) << print(config.errors());

  config.overrides = {"experiment.methodology=memory_optimized"};
  ConfigSources sources = config.sources();
  sources.has_several_strategies = true;
  EXPECT_THROW(load_experiment_text(config.text, "config.yaml", sources), Error);
}

// Numbers.

TEST(Numbers, ArePrintedAsTheyAreWritten) {
  const auto shown = [](const std::string& optimizer) {
    const LoadedExperiment loaded = ConfigCase{"training: {optimizer: {" + optimizer + "}}\n"}.load();
    return find_path(loaded.settings, "training.optimizer.min_learning_rate")->scalar;
  };
  EXPECT_EQ(shown("learning_rate: 3.0e-4, min_lr: 3.0e-5"), "3.0e-5");
  EXPECT_EQ(shown("learning_rate: 3.0e-4, min_lr: 0.00003"), "0.00003");
  EXPECT_EQ(shown("learning_rate: 3.0e-4, min_lr: +3e-5"), "3e-05");
  EXPECT_EQ(shown("learning_rate: 3.0e-4"), "3e-05") << "a tenth, not 2.9999999999999997e-05";
}

// The files that the older scripts' users have.

class OriginalFiles : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/config/original"); }
};

TEST_F(OriginalFiles, Load) {
  int files = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(TPRIMAT_SHARED_DATA "/config/original")) {
    if (file.path().extension() != ".yaml") continue;
    ++files;
    const LoadedExperiment loaded = ConfigCase{read_file(file.path())}.load();
    EXPECT_EQ(loaded.experiment.strategies.size(), 5u) << file;
    EXPECT_EQ(loaded.experiment.fixed_warmup_steps, 1) << file;
    for (const ModelEntry& model : loaded.experiment.models)
      for (const auto& [platform, setup] : loaded.experiment.platforms)
        EXPECT_EQ(make_train_spec(loaded.experiment, platform, model.spec.name, loaded.experiment.methodology)
                      .parallel.ranks(),
                  8)
            << file;
    const std::string text = print(loaded.warnings);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24) << file << "\n" << text;
  }
  EXPECT_EQ(files, 5);
}

}  // namespace
}  // namespace tprimat::suite
