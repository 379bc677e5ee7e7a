#include "launch/loaded_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "unit/launch/changes.h"
#include "unit/temporary_folder.h"

namespace tprimat::suite {
namespace {

class LoadedCheckpoints : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text = "") const { write_file_atomically(folder_ / file, text); }
  std::string refusal(Framework framework, const std::string& path = "") const {
    TrainSpec spec = base_request(Platform::nvd).spec;
    try {
      choose_checkpoint(require_framework(framework, Platform::nvd), folder_ / path, spec);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::usage);
      return error.what();
    }
    return "";
  }
  TrainSpec chosen(Framework framework, const std::string& path = "") const {
    TrainSpec spec = base_request(Platform::nvd).spec;
    choose_checkpoint(require_framework(framework, Platform::nvd), folder_ / path, spec);
    return spec;
  }
  const test::TemporaryFolder folder_;
};

bool holds(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST_F(LoadedCheckpoints, OfOurTrainerAreItsCompleteFolders) {
  EXPECT_TRUE(holds(refusal(Framework::native), "holds no checkpoint of the native trainer"));
  put("step_00000010/manifest.json");
  put("step_00000020/manifest.json");
  put("step_00000030/rank_00000_of_00001.bin");  // a save that was cut
  const TrainSpec newest = chosen(Framework::native);
  EXPECT_EQ(newest.checkpoint.load, folder_.path().string());
  EXPECT_EQ(newest.checkpoint.load_step, 20);
  EXPECT_EQ(newest.checkpoint.first_step(), 21);
  const TrainSpec named = chosen(Framework::native, "step_00000010/");
  EXPECT_EQ(named.checkpoint.load, folder_.path().string());
  EXPECT_EQ(named.checkpoint.load_step, 10);
}

TEST_F(LoadedCheckpoints, OfMegatronAreNamedByItsTracker) {
  put("step_00000010/manifest.json");
  EXPECT_TRUE(holds(refusal(Framework::mega), "there is no latest_checkpointed_iteration.txt"));
  put("latest_checkpointed_iteration.txt", "40\n");
  EXPECT_TRUE(holds(refusal(Framework::mega), "has no iter_0000040"));
  put("iter_0000040/common.pt");
  EXPECT_EQ(chosen(Framework::mega).checkpoint.load_step, 40);
  put("latest_checkpointed_iteration.txt", "release");
  put("release/common.pt");
  EXPECT_EQ(chosen(Framework::mega).checkpoint.load_step, 0);
  EXPECT_EQ(chosen(Framework::mega, "iter_0000040").checkpoint.load_step, 40);
  put("latest_checkpointed_iteration.txt", "-3");
  EXPECT_TRUE(holds(refusal(Framework::mega), "names no step but '-3'"));
}

TEST_F(LoadedCheckpoints, OfMegatronDeepSpeedNeedBothTrackers) {
  put("latest_checkpointed_iteration.txt", "40");
  EXPECT_TRUE(holds(refusal(Framework::mgds), "there is no latest"));
  put("latest", "global_step30");
  EXPECT_TRUE(holds(refusal(Framework::mgds), "checkpoints of two steps"));
  put("latest", "global_step40\n");
  EXPECT_EQ(chosen(Framework::mgds).checkpoint.load_step, 40);
}

TEST_F(LoadedCheckpoints, ThatAreAsFarAsTheTrainingAreRefused) {
  put("step_00000100/manifest.json");
  EXPECT_TRUE(holds(refusal(Framework::native), "the checkpoint is of step 100, and the training ends at step 100"));
}

TEST_F(LoadedCheckpoints, AreRefusedForFrameworksThatLoadNone) {
  for (const Framework framework : {Framework::tran, Framework::fsdp, Framework::deep, Framework::nemo}) {
    EXPECT_TRUE(holds(refusal(framework), "leave --load out, or choose the framework native, mega or mgds"));
    LaunchRequest request = base_request(Platform::nvd);
    request.spec.checkpoint.load = "/checkpoints";
    EXPECT_THROW(plan_launch(require_framework(framework, Platform::nvd), request), Error);
  }
}

TEST(LoadArguments, NameTheCheckpointAndKeepTheScheduleThatIsAskedFor) {
  LaunchRequest request = base_request(Platform::nvd);
  request.spec.checkpoint.load = "/earlier";
  request.spec.checkpoint.load_step = 40;
  const auto command_of = [&](Framework framework) {
    return plan_launch(require_framework(framework, Platform::nvd), request).command;
  };
  const auto has = [](const std::vector<std::string>& command, const std::vector<std::string>& words) {
    return std::search(command.begin(), command.end(), words.begin(), words.end()) != command.end();
  };
  EXPECT_TRUE(has(command_of(Framework::mega), {"--load", "/earlier", "--ckpt-step", "40",
                                                "--exit-on-missing-checkpoint", "--override-opt-param-scheduler"}));
  EXPECT_TRUE(has(command_of(Framework::mgds), {"--load", "/earlier", "--override-opt_param-scheduler"}));
  const LaunchPlan native = plan_launch(require_framework(Framework::native, Platform::nvd), request);
  EXPECT_TRUE(holds(native.files.at(0).content, "\"load\": \"/earlier\""));
  EXPECT_TRUE(holds(native.files.at(0).content, "\"load_step\": 40"));
}

}  // namespace
}  // namespace tprimat::suite
