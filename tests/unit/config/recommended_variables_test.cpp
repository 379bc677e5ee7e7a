#include <gtest/gtest.h>

#include "config/values.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

PlatformSettings settings_of_amd(const std::string& more, std::map<std::string, std::string> environment = {}) {
  const ConfigCase config{eight_devices(more), std::move(environment)};
  return config.load().experiment.platforms.at(Platform::amd).settings;
}

TEST(RecommendedVariables, AreSetOnAmd) {
  const PlatformSettings amd = settings_of_amd("");
  EXPECT_EQ(amd.hsa_no_scratch_reclaim, true);
  EXPECT_EQ(amd.hsa_enable_sdma, true);
  EXPECT_EQ(amd.cuda_alloc_conf, "expandable_segments:True");
  const LoadedExperiment loaded = ConfigCase{eight_devices()}.load();
  EXPECT_FALSE(loaded.experiment.platforms.at(Platform::nvd).settings.cuda_alloc_conf);
  const YamlNode* shown = find_path(loaded.settings, "platform_optimizations.amd.hsa_enable_sdma");
  ASSERT_NE(shown, nullptr);
  EXPECT_NE(shown->origin.text().find("recommended for AMD"), std::string::npos) << shown->origin.text();
}

TEST(RecommendedVariables, GiveWayToTheConfiguration) {
  const PlatformSettings stated =
      settings_of_amd("  amd: {hsa_enable_sdma: false, cuda_alloc_conf: \"max_split_size_mb:512\"}\n",
                      {{"HSA_ENABLE_SDMA", "1"}, {"PYTORCH_HIP_ALLOC_CONF", "expandable_segments:False"}});
  EXPECT_EQ(stated.hsa_enable_sdma, false);
  EXPECT_EQ(stated.hsa_no_scratch_reclaim, true);
  EXPECT_EQ(stated.cuda_alloc_conf, "max_split_size_mb:512");
  const PlatformSettings by_name =
      settings_of_amd("  amd: {environment: {HSA_NO_SCRATCH_RECLAIM: \"0\", PYTORCH_ALLOC_CONF: \"x:1\"}}\n");
  EXPECT_FALSE(by_name.hsa_no_scratch_reclaim);
  EXPECT_FALSE(by_name.cuda_alloc_conf);
  EXPECT_EQ(by_name.hsa_enable_sdma, true);
}

TEST(RecommendedVariables, GiveWayToWhatTheCallerExports) {
  const PlatformSettings amd = settings_of_amd("", {{"HSA_ENABLE_SDMA", "0"},
                                                    {"HSA_NO_SCRATCH_RECLAIM", "yes"},  // which the runtime ignores
                                                    {"PYTORCH_HIP_ALLOC_CONF", "expandable_segments:False"},
                                                    {"PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.9"}});
  EXPECT_EQ(amd.hsa_enable_sdma, false);
  EXPECT_EQ(amd.hsa_no_scratch_reclaim, true);
  EXPECT_EQ(amd.cuda_alloc_conf, "garbage_collection_threshold:0.9");
  const ConfigCase without_amd{"models: {big: {name: llama3.1_8b}}\n", {{"HSA_ENABLE_SDMA", "0"}}};
  EXPECT_EQ(without_amd.load().settings.find("platform_optimizations"), nullptr);
}

TEST(RecommendedVariables, CanBeLeftToTheMachine) {
  const PlatformSettings amd = settings_of_amd("  amd: {recommended_variables: false, hsa_enable_sdma: true}\n");
  EXPECT_EQ(amd.hsa_enable_sdma, true);
  EXPECT_FALSE(amd.hsa_no_scratch_reclaim);
  EXPECT_FALSE(amd.cuda_alloc_conf);
}

}  // namespace
}  // namespace tprimat::suite
