#include "launch/profilers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

LaunchRequest profiled_request(Platform platform, Profiler profiler) {
  LaunchRequest request;
  request.platform = platform;
  ModelSpec& model = request.spec.model;
  model.name = "tiny";
  model.num_layers = 2;
  model.hidden_size = 64;
  model.ffn_hidden_size = 128;
  model.num_attention_heads = model.num_key_value_heads = 4;
  model.head_dim = 16;
  model.vocab_size = 256;
  model.max_position_embeddings = 128;
  request.spec.steps = 16;
  request.paths = {"/out/runs/p", "/out/runs/p/training.log", "/out/p_summary.json", "/"};
  request.own_program = "/opt/tprimat";
  request.profile = ProfileWindow{profiler, 11, 15, "/out/profile_x", false};
  return request;
}

LaunchPlan plan_of(Framework framework, const LaunchRequest& request) {
  return plan_launch(require_framework(framework, request.platform), request);
}

TEST(Profilers, EveryOneIsListedOnceAndFindsItsFrameworks) {
  for (const auto& [id, name] : EnumNames<Profiler>::values) EXPECT_EQ(profiler_module(id).id, id) << name;
  EXPECT_EQ(profiler_modules().size(), std::size(EnumNames<Profiler>::values));
  const FrameworkModule& fsdp = require_framework(Framework::fsdp, Platform::cpu);
  EXPECT_EQ(choose_profiler(fsdp, Platform::nvd, {}), Profiler::nsys);
  EXPECT_EQ(choose_profiler(fsdp, Platform::amd, {}), Profiler::rocprofv3);
  EXPECT_EQ(choose_profiler(fsdp, Platform::cpu, {}), Profiler::torch);
  EXPECT_EQ(choose_profiler(fsdp, Platform::nvd, Profiler::torch), Profiler::torch);
  EXPECT_EQ(choose_profiler(require_framework(Framework::native, Platform::cpu), Platform::cpu, {}), Profiler::own);
  EXPECT_THROW(choose_profiler(fsdp, Platform::cpu, Profiler::nsys), Error);
  EXPECT_THROW(choose_profiler(fsdp, Platform::nvd, Profiler::own), Error);
}

TEST(Profilers, NsysSeesTheLauncherAndWaitsForTheWindow) {
  const LaunchPlan plan = plan_of(Framework::fsdp, profiled_request(Platform::nvd, Profiler::nsys));
  EXPECT_EQ(plan.command[0], "nsys");
  EXPECT_EQ(plan.command[1], "profile");
  const auto has = [&](const std::string& word) {
    return std::count(plan.command.begin(), plan.command.end(), word) == 1;
  };
  EXPECT_TRUE(has("--output=/out/profile_x"));
  EXPECT_TRUE(has("--capture-range=cudaProfilerApi"));
  EXPECT_TRUE(has("--capture-range-end=stop"));
  EXPECT_TRUE(has("torch.distributed.run"));
  EXPECT_EQ(plan.environment.at("TPRIMAT_PROFILE"), "cuda:11:15");
  EXPECT_EQ(plan.trace_path, "/out/profile_x.nsys-rep");
}

TEST(Profilers, MegatronIsToldByItsOwnWords) {
  LaunchRequest request = profiled_request(Platform::nvd, Profiler::nsys);
  request.spec.model.vocab_size = 256;
  request.spec.seed = 7;
  const std::vector<std::string> arguments = plan_of(Framework::mega, request).command;
  const std::vector<std::string> told = {"--profile", "--profile-step-start", "10", "--profile-step-end",
                                         "15",        "--profile-ranks",      "0"};
  EXPECT_NE(std::search(arguments.begin(), arguments.end(), told.begin(), told.end()), arguments.end());
  EXPECT_EQ(arguments[0], "nsys");
  EXPECT_EQ(choose_profiler(require_framework(Framework::mega, Platform::nvd), Platform::nvd, {}), Profiler::nsys);
}

bool holds_in_turn(const std::vector<std::string>& words, const std::vector<std::string>& wanted) {
  return std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
}

// Its PyTorch profiler records from the first number on, and writes its trace as the step of the second one begins.
TEST(Profilers, MegatronRecordsByThePyTorchProfilerToo) {
  LaunchRequest request = profiled_request(Platform::amd, Profiler::torch);
  request.spec.seed = 7;
  EXPECT_EQ(choose_profiler(require_framework(Framework::mega, Platform::amd), Platform::amd, {}), Profiler::torch);
  const LaunchPlan plan = plan_of(Framework::mega, request);
  EXPECT_TRUE(holds_in_turn(
      plan.command, {"--profile", "--profile-step-start", "11", "--profile-step-end", "16", "--profile-ranks", "0",
                     "--use-pytorch-profiler", "--tensorboard-dir", "/out/runs/p/torch_profile/tensorboard"}));
  EXPECT_EQ(plan.trace_path, "/out/profile_x.json.gz");
}

TEST(Profilers, MegatronDeepSpeedHasThePyTorchProfilerAlone) {
  LaunchRequest request = profiled_request(Platform::nvd, Profiler::torch);
  request.spec.data.dataset = "/data/corpus";
  const FrameworkModule& mgds = require_framework(Framework::mgds, Platform::nvd);
  EXPECT_EQ(choose_profiler(mgds, Platform::nvd, {}), Profiler::torch);
  EXPECT_TRUE(holds_in_turn(plan_of(Framework::mgds, request).command,
                            {"--profile", "pt", "--profile_steps", "11,15", "--tensorboard-dir"}));
  EXPECT_FALSE(marks_steps(mgds, Profiler::nsys));
  request.profile = ProfileWindow{Profiler::nsys, 1, 16, "/out/profile_x", true};
  const LaunchPlan whole = plan_of(Framework::mgds, request);
  EXPECT_EQ(whole.command[0], "nsys");
  EXPECT_EQ(whole.trace_path, "/out/profile_x.nsys-rep");
  for (const std::string& word : whole.command) {
    EXPECT_EQ(word.find("--capture-range"), std::string::npos) << word;
    EXPECT_FALSE(word.starts_with("--profile")) << word;
  }
  EXPECT_EQ(whole.environment.count("TPRIMAT_PROFILE"), 0u);
}

TEST(Profilers, NemoOpensItsWindowInTheAdapter) {
  const FrameworkModule& nemo = require_framework(Framework::nemo, Platform::nvd);
  EXPECT_EQ(choose_profiler(nemo, Platform::nvd, {}), Profiler::nsys);
  EXPECT_TRUE(marks_steps(nemo, Profiler::nsys));
  const LaunchPlan plan = plan_of(Framework::nemo, profiled_request(Platform::nvd, Profiler::nsys));
  EXPECT_EQ(plan.command[0], "nsys");
  EXPECT_EQ(plan.environment.at("TPRIMAT_PROFILE"), "cuda:11:15");
  EXPECT_EQ(plan.trace_path, "/out/profile_x.nsys-rep");
}

TEST(Profilers, PrimusRecordsItselfOrIsRecordedWhole) {
  const FrameworkModule& prim = require_framework(Framework::prim, Platform::amd);
  EXPECT_EQ(choose_profiler(prim, Platform::amd, {}), Profiler::torch);
  EXPECT_FALSE(marks_steps(prim, Profiler::rocprofv3));
  LaunchRequest request = profiled_request(Platform::amd, Profiler::rocprofv3);
  request.profile->whole_run = true;
  const LaunchPlan plan = plan_of(Framework::prim, request);
  EXPECT_TRUE(holds_in_turn(plan.command, {"rocprofv3", "--runtime-trace", "--stats", "--output-format"}));
  EXPECT_TRUE(holds_in_turn(plan.command, {"--", "bash", "examples/run_pretrain.sh"}));
  EXPECT_EQ(plan.trace_path, "/out/profile_x.pftrace");
}

TEST(Profilers, EveryFrameworkHasOneOnEachOfItsPlatforms) {
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : module.platforms)
      EXPECT_NO_THROW(choose_profiler(module, platform, {})) << enum_name(module.id) << enum_name(platform);
}

TEST(Profilers, RocprofWritesOneSetOfFilesPerRank) {
  const LaunchPlan plan = plan_of(Framework::fsdp, profiled_request(Platform::amd, Profiler::rocprofv3));
  const std::vector<std::string> head(plan.command.begin(), plan.command.begin() + 12);
  EXPECT_EQ(head, (std::vector<std::string>{"rocprofv3", "--runtime-trace", "--stats", "--selected-regions",
                                            "--output-format", "pftrace", "csv", "-d", "/out/profile_x_rocprofv3", "-o",
                                            "rank%env{RANK}%", "--"}));
  EXPECT_EQ(plan.environment.at("TPRIMAT_PROFILE"), "roctx:11:15");
  EXPECT_EQ(plan.trace_path, "/out/profile_x.pftrace");
}

TEST(Profilers, ThoseWithoutAProgramAreToldByTheEnvironmentAlone) {
  const LaunchPlan torch = plan_of(Framework::tran, profiled_request(Platform::cpu, Profiler::torch));
  EXPECT_EQ(torch.environment.at("TPRIMAT_PROFILE"), "torch:11:15:/out/profile_x.json.gz");
  const LaunchPlan own = plan_of(Framework::native, profiled_request(Platform::cpu, Profiler::own));
  EXPECT_EQ(own.command.front(), "/opt/tprimat");
  EXPECT_EQ(own.environment.at("TPRIMAT_PROFILE"), "own:11:15:/out/profile_x.json");
  LaunchRequest plain = profiled_request(Platform::cpu, Profiler::own);
  plain.profile.reset();
  EXPECT_EQ(plan_of(Framework::native, plain).environment.count("TPRIMAT_PROFILE"), 0u);
}

LaunchRequest measured_request(Platform platform) {
  LaunchRequest request = profiled_request(platform, Profiler::torch);
  request.profile.reset();
  return request;
}

TEST(FurtherSteps, FollowTheMeasuredOnesAndOneInWhichTheProfilerGetsReady) {
  for (const auto& [framework, profiler] : {std::pair{Framework::native, Profiler::own},
                                            {Framework::tran, Profiler::torch},
                                            {Framework::fsdp, Profiler::torch},
                                            {Framework::deep, Profiler::torch},
                                            {Framework::tita, Profiler::torch}}) {
    LaunchRequest request = measured_request(Platform::cpu);
    request.profiled_steps = choose_further_steps(require_framework(framework, Platform::cpu), request, 3);
    EXPECT_EQ(request.profiled_steps->profiler, profiler);
    const LaunchPlan plan = plan_of(framework, request);
    EXPECT_EQ(plan.environment.at("TPRIMAT_PROFILE"),
              std::string(enum_name(profiler)) + ":18:20:/out/runs/p/profile/rank_{rank}.json.gz");
    EXPECT_EQ(plan.command, plan_of(framework, measured_request(Platform::cpu)).command) << "the same training";
    EXPECT_EQ(trace_of_rank(*request.profiled_steps, 7), "/out/runs/p/profile/rank_7.json.gz");
  }
}

TEST(FurtherSteps, ReachRanksInContainersToo) {
  LaunchRequest request = measured_request(Platform::nvd);
  request.launch.launcher = Launcher::docker;
  request.launch.docker.image = "example/torch:1";
  request.profiled_steps = choose_further_steps(require_framework(Framework::fsdp, Platform::nvd), request, 1);
  const std::vector<std::string> command = plan_of(Framework::fsdp, request).command;
  EXPECT_TRUE(std::ranges::any_of(
      command, [](const std::string& word) { return word.find("TPRIMAT_PROFILE") != std::string::npos; }));
}

TEST(FurtherSteps, AreRefusedInASentenceWhereTheyCannotBeTrained) {
  const auto reason = [](Framework framework, const LaunchRequest& request) -> std::string {
    try {
      choose_further_steps(require_framework(framework, request.platform), request, 3);
      return "";
    } catch (const Error& error) {
      return error.problems().front().what;
    }
  };
  LaunchRequest request = measured_request(Platform::nvd);
  for (const Framework each : {Framework::mega, Framework::nemo, Framework::mgds})
    EXPECT_NE(reason(each, request).find("ends with the last measured step"), std::string::npos) << enum_name(each);
  request.launch.launcher = Launcher::kubernetes;
  EXPECT_NE(reason(Framework::fsdp, request).find("would stay on the cluster"), std::string::npos);
}

TEST(Profilers, AMissingOneIsNamedWithTheCommandThatInstallsIt) {
  const std::string path = std::getenv("PATH");
  const fs::path folder = fs::temp_directory_path() / ("profilers " + std::to_string(::getpid()));
  ::setenv("PATH", folder.c_str(), 1);
  try {
    require_profiler(profiler_module(Profiler::nsys));
    ADD_FAILURE() << "was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("apt-get install nsight-systems-cli"), std::string::npos) << error.what();
  }
  write_file_atomically(folder / "nsys", "#!/bin/sh\n");
  fs::permissions(folder / "nsys", fs::perms::owner_all);
  EXPECT_NO_THROW(require_profiler(profiler_module(Profiler::nsys)));
  EXPECT_NO_THROW(require_profiler(profiler_module(Profiler::torch)));
  fs::remove_all(folder);
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace tprimat::suite
