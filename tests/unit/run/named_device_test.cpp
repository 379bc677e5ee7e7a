#include <algorithm>

#include "result/result_file.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

// A result names the device that the trainer computed on.
class NamedDeviceTest : public SuiteTest {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    put_gpu();
  }

  RunResult result_of(const std::string& device) {
    const SuiteReport report =
        run({"say@0=model gpt | parameters 1 | precision bf16 | threads 1" + device + " | allocated 0.100 GB"});
    return load_run_result(report.outcomes.at(0).result_path);
  }
  static bool warns(const RunResult& result) {
    return std::ranges::any_of(result.warnings, [](const std::string& each) {
      return each.find("the trainer computed on") != std::string::npos;
    });
  }
};

TEST_F(NamedDeviceTest, AnotherDeviceThanTheDriversIsNamedAndWarnedOf) {
  const RunResult result = result_of(" | device kernels on the processor");
  EXPECT_EQ(result.gpu_info.device_name, "kernels on the processor");
  EXPECT_TRUE(std::ranges::find(result.warnings,
                                "the trainer computed on 'kernels on the processor', not on the 'NVIDIA H200' that the "
                                "driver lists") != result.warnings.end());
}

TEST_F(NamedDeviceTest, TheSameDeviceInOtherWordsIsNoFinding) {
  for (const char* device : {" | device NVIDIA H200", " | device NVIDIA H200 NVL", ""}) {
    const RunResult result = result_of(device);
    EXPECT_EQ(result.gpu_info.device_name, "NVIDIA H200");
    EXPECT_FALSE(warns(result)) << device;
  }
}

TEST_F(NamedDeviceTest, WhatTheDefaultChoseIsStored) {
  SuitePlan suite = plan({});
  suite.runs.at(0).default_choice = {"the default for 1 x NVIDIA H200 trains gpt", "about 1 min"};
  const RunResult chosen = load_run_result(run(suite).outcomes.at(0).result_path);
  EXPECT_EQ(chosen.default_choice, suite.runs[0].default_choice);
  EXPECT_FALSE(load_run_result(run(std::vector<std::string>{}).outcomes.at(0).result_path).default_choice);
}

}  // namespace
}  // namespace tprimat::suite
