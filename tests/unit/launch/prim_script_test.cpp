#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/frameworks.h"
#include "launch/primus_experiment.h"
#include "text/json.h"
#include "unit/launch/changes.h"

// What Primus' start script sets itself, and the steps that Primus records itself.
namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class PrimScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_ = base_request(Platform::amd);
    request_.spec.data = {};
    request_.spec.parallel = {.data = 8};
    request_.model_notes = {};
    request_.checkout.installation = folder_.string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string complaint() const {
    try {
      require_framework(Framework::prim, Platform::amd).plan(request_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  const fs::path folder_ = fs::temp_directory_path() / ("prim script " + std::to_string(::getpid()));
  LaunchRequest request_;
};

TEST_F(PrimScriptTest, WhatItsScriptSetsItselfCannotBeAskedFor) {
  request_.settings.visible_devices = "0,1,2,3,4,5,6,7";
  request_.settings.hsa_enable_sdma = true;
  EXPECT_EQ(complaint(), "");
  request_.settings.visible_devices = "4,5";
  EXPECT_NE(complaint().find("always trains on devices 0,1,2,3,4,5,6,7"), std::string::npos);
  request_.settings.visible_devices.reset();
  request_.settings.cuda_device_max_connections = 8;
  EXPECT_NE(complaint().find("CUDA_DEVICE_MAX_CONNECTIONS=1"), std::string::npos);
  request_.settings.hsa_enable_sdma = false;
  EXPECT_NE(complaint().find("HSA_ENABLE_SDMA=1"), std::string::npos);
}

TEST_F(PrimScriptTest, ItsArgumentsAreFurtherSettingsOfTheFile) {
  request_.arguments = {"--use_turbo_attention",
                        "True",
                        "--num-workers=4",
                        "--moe",
                        "--factor",
                        "1e-5",
                        "--name",
                        "a: b",
                        "--none",
                        "None",
                        "--list",
                        "[1, 2]"};
  const std::string text = require_framework(Framework::prim, Platform::amd).plan(request_).files.front().content;
  for (const char* line : {"      use_turbo_attention: true\n", "      num_workers: 4\n", "      moe: true\n",
                           "      factor: 1.0e-05\n", "      name: \"a: b\"\n", "      none: null\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const LaunchPlan plan = plan_launch(require_framework(Framework::prim, Platform::amd), request_);
  EXPECT_EQ(std::count(plan.command.begin(), plan.command.end(), "--num-workers=4"), 0);
  request_.arguments = {"--lr", "1"};
  EXPECT_NE(complaint().find("lr is set already, to 0.0003"), std::string::npos);
  for (const char* word : {"lr", "-lr", "--", "--a b", "--a: b"}) {
    request_.arguments = {word};
    EXPECT_NE(complaint().find("write --key value"), std::string::npos) << word;
  }
}

TEST_F(PrimScriptTest, ANewerScriptKeepsTheSdmaThatItIsCalledWith) {
  request_.settings.hsa_enable_sdma = false;
  const fs::path script = folder_ / "examples/run_pretrain.sh";
  write_file_atomically(script, "export HSA_ENABLE_SDMA=1\n");
  EXPECT_NE(complaint().find("update Primus"), std::string::npos);
  write_file_atomically(script, "export HSA_ENABLE_SDMA=${HSA_ENABLE_SDMA:-1}\n");
  EXPECT_EQ(complaint(), "");
}

TEST_F(PrimScriptTest, RecordsTheStepsOfAWindowByItsOwnKeys) {
  EXPECT_EQ(list_primus_overrides(request_)["profile"], false);  // whatever a base says
  request_.profile = ProfileWindow{Profiler::torch, 11, 15, "/out/p", false};
  const Json overrides = list_primus_overrides(request_);
  EXPECT_EQ(overrides["profile"], true);
  EXPECT_EQ(overrides["use_pytorch_profiler"], true);
  EXPECT_EQ(overrides["profile_step_start"], 11);
  EXPECT_EQ(overrides["profile_step_end"], 16);  // when it writes its trace
  EXPECT_NE(write_primus_experiment(request_).find("      profile_ranks: [0]\n"), std::string::npos);
  request_.profile->profiler = Profiler::rocprofv3;
  EXPECT_EQ(list_primus_overrides(request_)["profile"], false);
}

}  // namespace
}  // namespace tprimat::suite
