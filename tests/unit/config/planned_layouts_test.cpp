// Where the planner chooses the layouts, a configuration needs none.
#include <gtest/gtest.h>

#include "config_case.h"

namespace tprimat::suite {
namespace {

LoadedExperiment load_planned(const ConfigCase& config) {
  ConfigSources sources = config.sources();
  sources.plans_layouts = true;
  return load_experiment_text(config.text, "config.yaml", sources);
}

TEST(PlannedLayouts, NoStrategyIsNeeded) {
  ConfigCase config{eight_devices()};
  config.text = config.text.substr(0, config.text.find("parallelism:"));
  config.text.replace(config.text.find("mine"), 4, "single");
  EXPECT_TRUE(mention(config.errors(), "has no layout for llama on nvd, which has 8 devices"))
      << print(config.errors());
  const Experiment experiment = load_planned(config).experiment;
  const TrainSpec spec = make_spec_without_layout(experiment, Platform::nvd, "llama", Framework::mega);
  EXPECT_EQ(spec.parallel.ranks(), 8);
  EXPECT_EQ(spec.micro_batch_size, 1);
  EXPECT_EQ(spec.global_batch_size, 128);
}

TEST(PlannedLayouts, OneOfAnotherNumberOfDevicesDoesNotMatter) {
  ConfigCase config{eight_devices()};
  config.overrides = {"hardware.platforms.nvd.num_gpus=16", "hardware.platforms.amd.num_gpus=16"};
  EXPECT_TRUE(mention(config.errors(), "does not match the number of devices 16")) << print(config.errors());
  const LoadedExperiment loaded = load_planned(config);
  EXPECT_FALSE(mention(loaded.warnings, "number of devices")) << print(loaded.warnings);
}

TEST(PlannedLayouts, AWrongLayoutOfTheFileIsToldButNotInTheWay) {
  ConfigCase config{eight_devices()};
  config.text.replace(config.text.find("TP: 4, PP"), 5, "TP: 3");
  EXPECT_FALSE(config.errors().empty());
  EXPECT_TRUE(mention(load_planned(config).warnings, "mine.llama.nvd cannot run: TP 3 x PP 1 x DP 2"));
}

TEST(PlannedLayouts, FrameworksKeepTheirOwnSettings) {
  ConfigCase config{eight_devices("frameworks:\n  mega: {precision: fp8}\n")};
  const Experiment experiment = load_planned(config).experiment;
  EXPECT_EQ(make_spec_without_layout(experiment, Platform::nvd, "llama", Framework::mega).precision, Precision::fp8);
  EXPECT_EQ(make_spec_without_layout(experiment, Platform::nvd, "llama", Framework::nemo).precision, Precision::bf16);
}

}  // namespace
}  // namespace tprimat::suite
