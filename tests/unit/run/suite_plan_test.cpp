#include "run/suite_plan.h"

#include "base/error.h"
#include "base/files.h"
#include "spec/config_hash.h"
#include "suite_fixture.h"
#include "unit/temporary_folder.h"

namespace tprimat::suite {
namespace {

class SuitePlanTest : public ::testing::Test {
 protected:
  SuitePlan plan() { return plan_suite(experiment_, request_, machine_); }
  std::vector<std::string> result_names() {
    std::vector<std::string> names;
    for (const PlannedRun& run : plan().runs)
      names.push_back(std::filesystem::path(run.plan.result_path).filename().string());
    return names;
  }
  Experiment experiment_ = tiny_experiment("/nowhere/out");
  SuiteRequest request_;
  MachineFacts machine_;
};

TEST_F(SuitePlanTest, NamesFilesByWhatThereIsMoreThanOneOf) {
  EXPECT_EQ(result_names(), std::vector<std::string>{"train_cpu_native_gpt.json"});
  experiment_.runs = 2;
  EXPECT_EQ(result_names(), (std::vector<std::string>{"train_cpu_native_gpt_r1.json", "train_cpu_native_gpt_r2.json"}));
  ModelEntry second;
  second.spec = tiny_model("llama");
  experiment_.models.push_back(second);
  experiment_.runs = 1;
  EXPECT_EQ(result_names(), (std::vector<std::string>{"train_cpu_native_gpt.json", "train_cpu_native_llama.json"}));
  experiment_.strategies["a"]["gpt"][Platform::cpu].strategy = "a";
  experiment_.strategies["b"]["gpt"][Platform::cpu].strategy = "b";
  request_.models = {"gpt"};
  request_.strategies = {"a", "b"};
  EXPECT_EQ(result_names(), (std::vector<std::string>{"train_cpu_native_gpt_a.json", "train_cpu_native_gpt_b.json"}));
}

TEST_F(SuitePlanTest, FrameworksTakeTurns) {
  request_.frameworks = {Framework::native, Framework::tran};
  request_.presence = Presence::any;
  request_.own_program = "/usr/bin/tprimat";
  experiment_.runs = 3;
  experiment_.result_filename = "{framework}.json";
  EXPECT_EQ(result_names(), (std::vector<std::string>{"native_r1.json", "tran_r1.json", "native_r2.json",
                                                      "tran_r2.json", "native_r3.json", "tran_r3.json"}));
}

TEST_F(SuitePlanTest, WhatAFrameworkCannotDoIsSaidOnce) {
  request_.frameworks = {Framework::native, Framework::nemo};
  experiment_.runs = 3;
  const SuitePlan suite = plan();
  EXPECT_EQ(suite.runs.size(), 3u);
  EXPECT_EQ(suite.unavailable.size(), 1u);
}

TEST_F(SuitePlanTest, FollowsThePatternOfTheConfiguration) {
  experiment_.result_filename = "{model}-{framework}.{platform}.json";
  experiment_.log_filename = "log-{model}.txt";
  experiment_.runs = 2;
  const SuitePlan suite = plan();
  EXPECT_EQ(suite.runs[1].plan.result_path, "/nowhere/out/gpt-native.cpu_r2.json");
  EXPECT_EQ(suite.runs[1].plan.log_path, "/nowhere/out/log-gpt_r2.txt");
  experiment_.result_filename = "same.json";
  experiment_.runs = 1;
  ModelEntry second;
  second.spec = tiny_model("llama");
  experiment_.models.push_back(second);
  EXPECT_THROW(plan(), Error);
}

TEST_F(SuitePlanTest, NoOutputOverwritesAnother) {
  const auto refusal = [&](const std::string& result, const std::string& log) -> std::string {
    experiment_.result_filename = result;
    experiment_.log_filename = log;
    try {
      plan();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("{model}.json", "{model}.log"), "");
  const std::string same = refusal("train.log", "train.log");
  EXPECT_NE(same.find("the result of native gpt on cpu, strategy single and the log of native gpt on cpu, strategy "
                      "single would share the file /nowhere/out/train.log"),
            std::string::npos)
      << same;
  EXPECT_NE(refusal("{model}.json", "runs"), "");
  EXPECT_NE(refusal("runs", "{model}.log"), "");
  ModelEntry second;
  second.spec = tiny_model("llama");
  experiment_.models.push_back(second);
  EXPECT_EQ(refusal("{model}.json", "{model}.log"), "");
  EXPECT_NE(refusal("{model}.json", "train.log"), "") << "the second log overwrites the first";
}

TEST_F(SuitePlanTest, UsesEveryThreadThatTheProcessMayUse) {
  machine_.cpu.usable_threads = 6;
  EXPECT_EQ(plan().runs[0].spec.threads, 6);
}

TEST_F(SuitePlanTest, RanksShareTheThreads) {
  machine_.cpu.usable_threads = 9;
  for (const auto& [ranks, threads] : {std::pair{2, 4}, {4, 2}, {16, 1}}) {
    experiment_.platforms[Platform::cpu].num_devices = ranks;
    experiment_.global_batch_size = 2 * ranks;
    experiment_.strategies["dp"]["gpt"][Platform::cpu] = {.strategy = "dp", .data = ranks};
    request_.strategies = {"dp"};
    const SuitePlan suite = plan();
    EXPECT_EQ(suite.runs[0].spec.threads, threads) << ranks;
    EXPECT_EQ(suite.runs[0].plan.command.front(), "mpirun");
  }
}

TEST_F(SuitePlanTest, TheRequestOverridesTheDataset) {
  const test::TemporaryFolder folder;
  const std::string prefix = folder / "tokens";
  write_file_atomically(prefix + ".bin", "");
  write_file_atomically(prefix + ".idx", "");
  request_.dataset = prefix;
  EXPECT_EQ(plan().runs[0].spec.data.dataset, prefix);
}

TEST_F(SuitePlanTest, AMissingDatasetIsNamedBeforeAnythingStarts) {
  request_.dataset = "/nowhere/tokens";
  try {
    plan();
    FAIL() << "nothing can train on a dataset that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    EXPECT_EQ(error.problems().front().where, "--dataset");
    EXPECT_NE(std::string(error.what()).find("/nowhere/tokens.bin"), std::string::npos);
  }
}

TEST_F(SuitePlanTest, MissingInitialWeightsAreNamedBeforeAnythingStarts) {
  experiment_.models[0].initial_weights = "/nowhere/weights";
  try {
    plan();
    FAIL() << "nothing can start from weights that are not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.problems().front().where, "models.gpt.initial_weights");
    EXPECT_EQ(error.problems().front().what, "there is no /nowhere/weights/config.json");
  }
}

ExitStatus status_of_error(const std::function<void()>& action, std::string& text) {
  try {
    action();
  } catch (const Error& error) {
    text = error.what();
    return error.status();
  }
  return ExitStatus::done;
}

TEST_F(SuitePlanTest, RefusesWhatItDoesNotKnow) {
  std::string text;
  request_.models = {"gtp"};
  EXPECT_EQ(status_of_error([&] { plan(); }, text), ExitStatus::usage);
  EXPECT_NE(text.find("did you mean 'gpt'"), std::string::npos) << text;
  request_ = {};
  request_.platform = Platform::amd;
  EXPECT_EQ(status_of_error([&] { plan(); }, text), ExitStatus::usage);
  EXPECT_NE(text.find("platform amd; it has cpu"), std::string::npos) << text;
  request_ = {};
  request_.strategies = {"no_such_strategy"};
  experiment_.strategies["balanced"]["gpt"][Platform::cpu] = {};
  EXPECT_EQ(status_of_error([&] { plan(); }, text), ExitStatus::usage);
  request_ = {};
  request_.frameworks = {Framework::nemo};
  EXPECT_EQ(status_of_error([&] { plan(); }, text), ExitStatus::missing_component);
  EXPECT_NE(text.find("'nemo'"), std::string::npos) << text;
}

TEST_F(SuitePlanTest, AFrameworkThatIsNotThereDoesNotStopTheOthers) {
  request_.frameworks = {Framework::nemo, Framework::native};
  const SuitePlan suite = plan();
  EXPECT_EQ(suite.runs.size(), 1u);
  EXPECT_EQ(suite.unavailable.size(), 1u);
}

TEST_F(SuitePlanTest, OnAGpuMachineTheProcessorStillServesWhatNeedsNoGpu) {
  machine_.platform = Platform::nvd;
  experiment_.platforms[Platform::nvd].framework = Framework::prim;  // runs on AMD alone
  EXPECT_EQ(plan().runs[0].platform, Platform::cpu);
}

TEST(ConfigHash, ChangesWithEverythingThatIsAskedFor) {
  TrainSpec spec;
  spec.model = tiny_model("gpt");
  LaunchFacts launch;
  const std::string hash = hash_config(spec, launch);
  EXPECT_EQ(hash, hash_config(spec, launch));
  EXPECT_EQ(hash, hash_config_of_file(train_spec_to_json(spec), launch));
  EXPECT_TRUE(hash.starts_with("fnv1a64:"));
  EXPECT_EQ(hash.size(), 24u);
  EXPECT_NE(hash, hash_config(spec, {.platform = Platform::nvd}));
  EXPECT_NE(hash, hash_config(spec, {.framework = Framework::fsdp}));
  EXPECT_NE(hash, hash_config(spec, {.launcher = Launcher::slurm, .nodes = 2}));
  launch.settings.environment["NCCL_ALGO"] = "Ring";
  EXPECT_NE(hash, hash_config(spec, launch));
  EXPECT_NE(hash, hash_config(spec, {.installation = InstallationFacts{"a"}}));
  EXPECT_NE(hash_config(spec, {.installation = InstallationFacts{"a"}}),
            hash_config(spec, {.installation = InstallationFacts{"b"}}));
  spec.optimizer.beta2 = 0.951;
  EXPECT_NE(hash, hash_config(spec, {}));
}

}  // namespace
}  // namespace tprimat::suite
