#include "run/rank_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "run/environment.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

TEST(LoggedVariables, AreThoseThatPrimusPrints) {
  const auto variables = read_logged_variables(
      "[NODE-0(gpu01)] [INFO] ==========AMD-specific GPU optimizations==========\n"
      "[NODE-0(gpu01)] [INFO] HSA_ENABLE_SDMA: 1\n"
      "[NODE-0(gpu01)] [INFO] NCCL_DEBUG: \n"
      "\x1b[0;34m[2026-05-01 10:00:00] [NODE-0(gpu01)] [INFO]\x1b[0m     HSA_NO_SCRATCH_RECLAIM=1\r\n"
      "[NODE-0(gpu01)]     GPU_MAX_HW_QUEUES=2\n"
      "[NODE-0(gpu01)] [INFO]     NCCL_ALGO=<unset>\n"
      "HSA_ENABLE_SDMA: 0\n"
      "[NODE-0(gpu01)] [INFO] Launching distributed training with command: torchrun");
  const std::map<std::string, std::string> wanted = {
      {"HSA_ENABLE_SDMA", "1"}, {"HSA_NO_SCRATCH_RECLAIM", "1"}, {"GPU_MAX_HW_QUEUES", "2"}};
  EXPECT_EQ(variables, wanted);
  EXPECT_TRUE(read_logged_variables("").empty());
  EXPECT_TRUE(read_logged_variables("[NODE-0(gpu01)]\n[NODE-\n[NODE-0(gpu01)]=\n").empty());
}

class RankEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("GPU_MAX_HW_QUEUES", "4", 1);
    run_.platform = Platform::amd;
    run_.plan.environment = {{"HSA_ENABLE_SDMA", "1"}, {"PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True"}};
  }
  void TearDown() override { ::unsetenv("GPU_MAX_HW_QUEUES"); }
  std::map<std::string, std::string> stored() const {
    return describe_environment(MachineFacts{}, {}, environment_of_ranks(run_));
  }
  PlannedRun run_;
};

TEST_F(RankEnvironment, HoldsWhatTheLaunchAdds) {
  EXPECT_EQ(stored().at("env.HSA_ENABLE_SDMA"), "1");
  EXPECT_EQ(stored().at("env.PYTORCH_HIP_ALLOC_CONF"), "expandable_segments:True");
  EXPECT_EQ(stored().at("env.GPU_MAX_HW_QUEUES"), "4");
  EXPECT_FALSE(stored().contains("env.HSA_NO_SCRATCH_RECLAIM"));
}

TEST_F(RankEnvironment, OfAContainerHoldsWhatIsPassedAlone) {
  run_.launch_facts.launcher = Launcher::docker;
  run_.plan.place = Whereabouts::this_machine;
  EXPECT_FALSE(stored().contains("env.GPU_MAX_HW_QUEUES"));
  EXPECT_EQ(stored().at("env.HSA_ENABLE_SDMA"), "1");
  run_.request.launch.docker.environment = {"GPU_MAX_HW_QUEUES", "NCCL_ALGO=Ring"};
  EXPECT_EQ(stored().at("env.GPU_MAX_HW_QUEUES"), "4");
  EXPECT_EQ(stored().at("env.NCCL_ALGO"), "Ring");
}

// Apptainer starts them as children of this program.
TEST_F(RankEnvironment, OfAnImageWithoutADaemonIsThatOfTheCaller) {
  run_.launch_facts.launcher = Launcher::docker;
  EXPECT_EQ(stored().at("env.GPU_MAX_HW_QUEUES"), "4");
}

TEST_F(RankEnvironment, OfPodsHoldsWhatIsPassedAlone) {
  run_.launch_facts.launcher = Launcher::kubernetes;
  EXPECT_FALSE(stored().contains("env.GPU_MAX_HW_QUEUES"));
  EXPECT_EQ(stored().at("env.HSA_ENABLE_SDMA"), "1");
}

TEST_F(RankEnvironment, OnOtherMachinesUnderMpirunHoldsWhatIsPassedAlone) {
  run_.launch_facts.launcher = Launcher::mpi;
  EXPECT_EQ(stored().at("env.GPU_MAX_HW_QUEUES"), "4");
  run_.plan.place = Whereabouts::elsewhere;
  EXPECT_FALSE(stored().contains("env.GPU_MAX_HW_QUEUES"));
}

TEST_F(RankEnvironment, TheStartScriptDecides) {
  run_.plan.log_path = fs::temp_directory_path() / ("rank environment " + std::to_string(::getpid()));
  write_file_atomically(run_.plan.log_path,
                        "[NODE-0(a)] [INFO] GPU_MAX_HW_QUEUES: 2\n[NODE-0(a)] [INFO] HSA_ENABLE_SDMA: 0\n");
  EXPECT_EQ(stored().at("env.GPU_MAX_HW_QUEUES"), "2");
  EXPECT_EQ(stored().at("env.HSA_ENABLE_SDMA"), "0");
  run_.platform = Platform::nvd;
  EXPECT_EQ(stored().at("env.HSA_ENABLE_SDMA"), "1");
  fs::remove(run_.plan.log_path);
}

}  // namespace
}  // namespace tprimat::suite
