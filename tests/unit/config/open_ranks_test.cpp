// On processors, a run whose configuration leaves the number of ranks open takes one per memory domain.
#include <gtest/gtest.h>

#include "config_case.h"

namespace tprimat::suite {
namespace {

constexpr const char* k_open = R"(
hardware: {platforms: {cpu: {framework: native}}}
models: {small: {num_layers: 2, hidden_size: 32, ffn_hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 2,
                 vocab_size: 64, max_position_embeddings: 64}}
training: {data: {micro_batch_size: 2, global_batch_size: 8, seq_length: 16}}
)";

LoadedExperiment load(const std::string& text, int64_t domains, std::vector<std::string> overrides = {}) {
  ConfigSources sources;
  sources.overrides = std::move(overrides);
  sources.open_ranks = {domains, 1e9};
  return load_experiment_text(text, "config.yaml", sources);
}

int64_t ranks(const LoadedExperiment& loaded) { return loaded.experiment.platforms.at(Platform::cpu).num_devices; }
int64_t ranks(const std::string& more, std::vector<std::string> overrides = {}) {
  return ranks(load(k_open + more, 2, std::move(overrides)));
}

TEST(OpenRanks, EachDomainGetsOneThatSharesTheBatch) {
  const LoadedExperiment loaded = load(k_open, 2);
  EXPECT_EQ(ranks(loaded), 2);
  const TrainSpec spec = make_train_spec(loaded.experiment, Platform::cpu, "small", "single", Framework::native);
  EXPECT_EQ(spec.parallel.data, 2);
  EXPECT_EQ(spec.parallel.ranks(), 2);
  EXPECT_EQ(spec.micro_batch_size, 2);
  EXPECT_TRUE(loaded.warnings.empty()) << print(loaded.warnings);
}

TEST(OpenRanks, TheBuiltInDefaultLeavesThemOpen) {
  EXPECT_EQ(ranks(load(std::string(default_config_text()), 2)), 2);
  EXPECT_EQ(ranks(load(std::string(default_config_text()), 1)), 1);
}

TEST(OpenRanks, ABatchThatDoesNotDivideStaysWhole) { EXPECT_EQ(ranks(load(k_open, 3)), 1); }

TEST(OpenRanks, ReplicasThatDoNotFitStayOne) {
  ConfigSources sources;
  sources.open_ranks = {2, 1e6};
  EXPECT_EQ(ranks(load_experiment_text(k_open, "config.yaml", sources)), 1);
}

TEST(OpenRanks, WhatIsStatedStands) {
  EXPECT_EQ(ranks("", {"hardware.platforms.cpu.num_gpus=1"}), 1);
  EXPECT_EQ(ranks("", {"hardware.platforms.cpu.memory_per_gpu_gb=64"}), 1);
  EXPECT_EQ(ranks("", {"launch.launcher=slurm"}), 1);
  EXPECT_EQ(ranks("parallelism: {mine: {small: {cpu: {DP: 1}}}}\n"), 1);
  EXPECT_EQ(ranks("benchmarking: {enhanced_metrics: {cloud_costs: {cpu_auto_1gpu_per_hour: 2}}}\n"), 1);
}

TEST(OpenRanks, AStrategyMustStillExist) { EXPECT_THROW(ranks("", {"experiment.methodology=tp2"}), Error); }

}  // namespace
}  // namespace tprimat::suite
