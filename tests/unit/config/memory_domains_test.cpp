// On processors, a configuration that leaves the number of ranks open gets one per memory domain.
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
  sources.memory_domains = domains;
  return load_experiment_text(text, "config.yaml", sources);
}

int64_t ranks(const LoadedExperiment& loaded) { return loaded.experiment.platforms.at(Platform::cpu).num_devices; }

TEST(MemoryDomains, EachGetsARankThatSharesTheBatch) {
  const LoadedExperiment loaded = load(k_open, 2);
  EXPECT_EQ(ranks(loaded), 2);
  const TrainSpec spec = make_train_spec(loaded.experiment, Platform::cpu, "small", "single", Framework::native);
  EXPECT_EQ(spec.parallel.data, 2);
  EXPECT_EQ(spec.parallel.ranks(), 2);
  EXPECT_EQ(spec.micro_batch_size, 2);
  EXPECT_TRUE(loaded.warnings.empty()) << print(loaded.warnings);
  const YamlNode* count = &loaded.settings;
  for (const char* key : {"hardware", "platforms", "cpu", "num_gpus"}) {
    count = count->find(key);
    ASSERT_NE(count, nullptr) << key;
  }
  EXPECT_EQ(count->scalar, "2");
  EXPECT_EQ(count->origin.text(), "one rank per memory domain (NUMA node)");
}

TEST(MemoryDomains, OneDomainIsOneRank) { EXPECT_EQ(ranks(load(k_open, 1)), 1); }

TEST(MemoryDomains, ABatchThatDoesNotDivideStaysWhole) { EXPECT_EQ(ranks(load(k_open, 3)), 1); }

TEST(MemoryDomains, AStatedNumberStands) {
  EXPECT_EQ(ranks(load(k_open, 2, {"hardware.platforms.cpu.num_gpus=1"})), 1);
}

TEST(MemoryDomains, StatedLayoutsStand) {
  EXPECT_EQ(ranks(load(std::string(k_open) + "parallelism: {mine: {small: {cpu: {DP: 1}}}}\n", 2)), 1);
}

TEST(MemoryDomains, TheBuiltInDefaultFollowsThem) {
  EXPECT_EQ(ranks(load(std::string(default_config_text()), 2)), 2);
  EXPECT_EQ(ranks(load(std::string(default_config_text()), 1)), 1);
}

}  // namespace
}  // namespace tprimat::suite
