#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/frameworks.h"
#include "launch/launch_plan.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

std::optional<Installation> find(Framework framework) { return require_framework(framework, Platform::cpu).find({}); }

TEST(Frameworks, EveryModuleIsCompleteAndListedOnce) {
  std::vector<Framework> seen;
  for (const FrameworkModule& module : framework_modules()) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), module.id), 0);
    seen.push_back(module.id);
    EXPECT_FALSE(module.platforms.empty());
    EXPECT_FALSE(module.long_name.empty());
    EXPECT_NE(module.find, nullptr);
    EXPECT_NE(module.plan, nullptr);
  }
}

TEST(Frameworks, AnUnavailableOneSaysWhatIs) {
  for (const auto& [framework, platform] :
       {std::pair{Framework::nemo, Platform::cpu}, {Framework::prim, Platform::nvd}}) {
    try {
      require_framework(framework, platform);
      FAIL() << "was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::missing_component);
      EXPECT_NE(std::string(error.what()).find("native (on nvd, amd, cpu)"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(require_framework(Framework::native, Platform::cpu).id, Framework::native);
}

LaunchRequest example_request(const fs::path& folder) {
  LaunchRequest request;
  request.spec.model.name = "tiny";
  request.spec.steps = 7;
  request.paths = {(folder / "runs" / "a b").string(), (folder / "x.log").string(), (folder / "train.json").string(),
                   "/"};
  request.own_program = "/opt/it's here/tprimat";
  return request;
}

LaunchPlan launch(Framework framework, const LaunchRequest& request) {
  return plan_launch(require_framework(framework, request.platform), request);
}

TEST(Native, PlansACompleteLaunch) {
  const LaunchPlan plan = launch(Framework::native, example_request("/out"));
  EXPECT_EQ(plan.command,
            (std::vector<std::string>{"/opt/it's here/tprimat", "train", "--spec", "/out/runs/a b/train_spec.json"}));
  EXPECT_EQ(plan.environment.at("TPRIMAT_STEPS"), "/out/runs/a b/steps.jsonl");
  ASSERT_EQ(plan.files.size(), 1u);
  const TrainSpec spec = train_spec_from_json(parse_json(plan.files[0].content, "spec"), "spec");
  EXPECT_EQ(spec, example_request("/out").spec);
  EXPECT_FALSE(find(Framework::native)->version.empty());
}

TEST(Native, CheckpointsGoIntoTheRunsFolder) {
  LaunchRequest request = example_request("/out");
  request.spec.checkpoint.directory = "checkpoints";
  const auto directory_of = [](const LaunchPlan& plan) {
    return train_spec_from_json(parse_json(plan.files.at(0).content, "spec"), "spec").checkpoint.directory;
  };
  EXPECT_EQ(directory_of(launch(Framework::native, request)), "/out/runs/a b/checkpoints");
  request.spec.checkpoint.directory = "/elsewhere";
  EXPECT_EQ(directory_of(launch(Framework::native, request)), "/elsewhere");
}

TEST(Native, GpusNeedTheirModuleBesideTheProgram) {
  const FrameworkModule& native = require_framework(Framework::native, Platform::nvd);
  EXPECT_FALSE(find_lacking(native, Platform::cpu));
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  ASSERT_FALSE(fs::exists(folder / "libtprimat_nvd.so")) << "the tests lie in a folder of their own";
  try {
    require_installed(native, {}, Platform::nvd);
    ADD_FAILURE() << "nothing is missing";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    const std::string text = error.what();
    EXPECT_NE(text.find("needs libtprimat_nvd.so, which is missing beside this program"), std::string::npos) << text;
    EXPECT_NE(text.find("scripts/build_gpu.sh nvd"), std::string::npos) << text;
  }
  require_installed(native, {}, Platform::cpu);
}

TEST(Native, TrainsOnTheGpusOfThePlatform) {
  LaunchRequest request = example_request("/out");
  request.platform = Platform::nvd;
  request.settings.visible_devices = "2";
  const LaunchPlan plan = launch(Framework::native, request);
  ASSERT_EQ(plan.command.size(), 6u);
  EXPECT_EQ(plan.command[4], "--device");
  EXPECT_EQ(plan.command[5], "nvd");
  EXPECT_EQ(plan.environment.at("CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_EQ(plan.environment.at("NCCL_DEBUG"), "WARN");
}

TEST(Native, SeveralRanksAreStartedByMpirun) {
  LaunchRequest request = example_request("/out");
  request.spec.parallel.tensor = 2;
  request.spec.parallel.data = 3;
  const std::string path = std::getenv("PATH");
  const fs::path folder = fs::temp_directory_path() / ("launch path " + std::to_string(::getpid()));
  fs::create_directories(folder);
  write_file_atomically(folder / "mpirun", "#!/bin/sh\n");
  fs::permissions(folder / "mpirun", fs::perms::owner_all);
  ::setenv("PATH", ("/nowhere:" + folder.string()).c_str(), 1);
  const LaunchPlan plan = launch(Framework::native, request);
  fs::remove_all(folder);
  EXPECT_EQ(plan.command, (std::vector<std::string>{"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
                                                    "none", "-n", "6", "/opt/it's here/tprimat", "train", "--spec",
                                                    "/out/runs/a b/train_spec.json"}));
  try {
    launch(Framework::native, request);
    ADD_FAILURE() << "planned without mpirun";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("openmpi-bin"), std::string::npos) << error.what();
  }
  ::setenv("PATH", path.c_str(), 1);
}

// A folder of environments as frameworks/setup.sh makes them, in which only what is named is installed.
class PythonFrameworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("launch python " + std::to_string(::getpid()));
    ::setenv("TPRIMAT_FRAMEWORKS", folder_.c_str(), 1);
    request_ = example_request("/out");
    ModelSpec& model = request_.spec.model;
    model.num_layers = 2;
    model.hidden_size = 64;
    model.ffn_hidden_size = 128;
    model.num_attention_heads = 4;
    model.num_key_value_heads = 2;
    model.head_dim = 16;
    model.vocab_size = 256;
    model.max_position_embeddings = 128;
    request_.spec.threads = 3;
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    fs::remove_all(folder_);
  }
  void install(const std::string& id, const std::string& package) const {
    const fs::path environment = folder_ / id;
    fs::create_directories(environment / "lib/python3.11/site-packages" / (package + ".dist-info"));
    write_file_atomically(environment / "bin/python", "#!/bin/sh\n");
  }
  std::string complaint() const {
    try {
      launch(Framework::tran, request_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  fs::path folder_;
  LaunchRequest request_;
};

TEST_F(PythonFrameworkTest, IsFoundByItsEnvironmentAndPackage) {
  EXPECT_FALSE(find(Framework::tran));
  install("tran", "accelerate-1.15.0");
  EXPECT_FALSE(find(Framework::tran));
  install("tran", "transformers-5.23.0");
  ASSERT_TRUE(find(Framework::tran));
  EXPECT_EQ(find(Framework::tran)->version, "5.23.0");
  EXPECT_FALSE(find(Framework::fsdp));
}

TEST_F(PythonFrameworkTest, AnotherEnvironmentIsFoundWhereItIsStated) {
  install("tran", "transformers-5.23.0");
  install("older", "transformers-4.57.0");
  const Checkout older{.installation = (folder_ / "older").string(), .config_dir = "", .run_script = ""};
  const auto found = require_framework(Framework::tran, Platform::cpu).find(older);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, "4.57.0");
  request_.checkout = older;
  EXPECT_EQ(launch(Framework::tran, request_).command.front(), (folder_ / "older/bin/python").string());
}

TEST_F(PythonFrameworkTest, OneThatIsMissingSaysHowToInstallIt) {
  try {
    require_installed(require_framework(Framework::deep, Platform::cpu), {}, Platform::cpu);
    FAIL() << "was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_EQ(error.problems().front().hint, "run tprimat doctor --install deep");
  }
}

TEST_F(PythonFrameworkTest, PlansCommandEnvironmentAndFiles) {
  const LaunchPlan plan = launch(Framework::tran, request_);
  const std::string python = (folder_ / "tran/bin/python").string(), spec = "/out/runs/a b/train_spec.json";
  EXPECT_EQ(plan.command, (std::vector<std::string>{python, "/out/runs/a b/adapter/train_tran.py", "--spec", spec}));
  EXPECT_EQ(plan.environment.at("TPRIMAT_PROGRAM"), "/opt/it's here/tprimat");
  EXPECT_EQ(plan.environment.at("OMP_NUM_THREADS"), "3");
  const auto content = [&](const std::string& path) {
    for (const GeneratedFile& file : plan.files)
      if (file.path == path) return file.content;
    return std::string("missing");
  };
  EXPECT_EQ(train_spec_from_json(parse_json(content(spec), "spec"), "spec"), request_.spec);
  EXPECT_EQ(parse_json(content("/out/runs/a b/config.json"), "config")["model_type"], "llama");
  EXPECT_NE(content("/out/runs/a b/adapter/train_tran.py").find("transformers.Trainer"), std::string::npos);
  EXPECT_NE(content("/out/runs/a b/adapter/tprimat/steps.py").find("TPRIMAT_STEPS"), std::string::npos);
  EXPECT_NE(content("/out/runs/a b/adapter/tprimat_adapter/settings.py").find("setting {key}"), std::string::npos);
}

TEST_F(PythonFrameworkTest, SeveralRanksAreStartedByTorchrun) {
  request_.spec.parallel.data = 4;
  EXPECT_EQ(launch(Framework::deep, request_).deviations.at(0).key, "zero_stage");  // bf16 without ZeRO
  request_.spec.precision = Precision::fp32;
  EXPECT_EQ(launch(Framework::tran, request_).command[2], "torch.distributed.run");
  EXPECT_EQ(launch(Framework::fsdp, request_).command[5], "4");
  EXPECT_EQ(launch(Framework::deep, request_).environment.at("DS_ACCELERATOR"), "cpu");
  request_.platform = Platform::nvd;
  EXPECT_EQ(launch(Framework::deep, request_).environment.count("DS_ACCELERATOR"), 0u);
  EXPECT_EQ(launch(Framework::deep, request_).environment.count("OMP_NUM_THREADS"), 0u);
}

TEST_F(PythonFrameworkTest, RefusesWhatTheFrameworkCannotDo) {
  EXPECT_EQ(complaint(), "");
  request_.spec.parallel.tensor = 2;
  EXPECT_NE(complaint().find("'tran' trains data-parallel only, but the layout is TP 2 PP 1 CP 1"), std::string::npos);
  request_.spec.parallel = {.data = 2, .zero_stage = 1};
  EXPECT_NE(complaint().find("does not support ZeRO-1"), std::string::npos);
  request_.spec.parallel = {};
  request_.spec.precision = Precision::fp8;
  EXPECT_NE(complaint().find("does not train in fp8"), std::string::npos);
}

TEST_F(PythonFrameworkTest, TakesAMixtureOfExpertsOnEveryRank) {
  ModelSpec& model = request_.spec.model;
  model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden_size = 96, .balancing = LoadBalancing::aux_loss};
  request_.spec.routing = Routing::balanced;
  request_.spec.dispatcher = Dispatcher::deepep;
  for (const Framework framework : {Framework::tran, Framework::fsdp, Framework::deep}) {
    const LaunchPlan plan = launch(framework, request_);
    const auto file = [&](std::string_view name) {
      const auto found = std::ranges::find_if(plan.files, [&](const auto& each) { return each.path.ends_with(name); });
      return found == plan.files.end() ? std::string("missing") : found->content;
    };
    EXPECT_EQ(parse_json(file("config.json"), "config")["model_type"], "mixtral");
    EXPECT_NE(file("tprimat/routers.py").find("LoadCounter"), std::string::npos);
    EXPECT_NE(file("tprimat_adapter/experts.py").find("deal_out"), std::string::npos);
    const auto said = std::ranges::find(plan.deviations, "dispatcher", &Deviation::key);
    ASSERT_NE(said, plan.deviations.end());
    EXPECT_EQ(said->effective, "none");
  }
  request_.spec.parallel = {.data = 4, .expert = 2};
  EXPECT_NE(complaint().find("every expert on every rank, but the layout is EP 2 ETP 1"), std::string::npos);
  request_.spec.parallel = {};
  model.experts->capacity_factor = 1.25;
  EXPECT_NE(complaint().find("drops no tokens"), std::string::npos);
  model.experts->capacity_factor.reset();
  model.prediction_layers = 1;
  EXPECT_NE(complaint().find("MTP"), std::string::npos);
  model.prediction_layers.reset();
  model.experts->groups = 2;
  EXPECT_NE(complaint().find("groups without latent_attention"), std::string::npos);
}

// The Trainer and DeepSpeed scale the loss of fp16 on GPUs only; PyTorch itself does on a processor too.
TEST_F(PythonFrameworkTest, Fp16IsRefusedWhereTheFrameworkHasNoLossScaling) {
  request_.spec.precision = Precision::fp16;
  EXPECT_NE(complaint().find("'tran' trains in fp16 on GPUs only"), std::string::npos);
  EXPECT_THROW(launch(Framework::deep, request_), Error);
  EXPECT_NO_THROW(launch(Framework::fsdp, request_));
  request_.platform = Platform::amd;
  EXPECT_EQ(complaint(), "");
  EXPECT_NO_THROW(launch(Framework::deep, request_));
}

TEST_F(PythonFrameworkTest, DeepSpeedsLossScaleIsAPowerOfTwo) {
  request_.spec.precision = Precision::fp16;
  request_.platform = Platform::nvd;
  for (const LossScaleSpec& scale : {LossScaleSpec{5000, 1000, 1}, LossScaleSpec{4096, 1000, 0.5}}) {
    request_.spec.loss_scale = scale;
    try {
      launch(Framework::deep, request_);
      ADD_FAILURE() << "planned with a loss scale of " << scale.initial << " down to " << scale.minimum;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("needs an initial loss scale of 2, 4, 8"), std::string::npos);
    }
    EXPECT_NO_THROW(launch(Framework::fsdp, request_));
  }
  request_.spec.loss_scale = {65536, 100, 2};
  EXPECT_NO_THROW(launch(Framework::deep, request_));
  request_.spec.parallel.data = 2;
  EXPECT_EQ(launch(Framework::deep, request_).deviations.at(0).effective, "1");  // else added up in fp16
}

// What --dry-run prints must do what `run` would do, so the test pastes it.
TEST(DryRun, NoTextEndsACommentOrBecomesAnAssignment) {
  LaunchPlan plan;
  plan.command = {"X=1/bin/program"};
  plan.cleanup_command = {"kill", "x\ny"};
  const std::string script = render_shell(plan);
  EXPECT_EQ(render_comment(describe_deviation({"key", "a\ntouch mark", "b\rc\u202e"})),
            "# key: a touch mark becomes b c\\u202e\n");
  EXPECT_NE(script.find("# to end it early: kill 'x y'\n"), std::string::npos) << script;
  EXPECT_NE(script.find("'X=1/bin/program' >"), std::string::npos) << script;
}

TEST(DryRun, TheScriptRunsAsItStands) {
  const fs::path folder = fs::temp_directory_path() / ("launch test " + std::to_string(::getpid()));
  LaunchPlan plan = launch(Framework::native, example_request(folder));
  plan.command = {"sh", "-c", "pwd; echo \"$TPRIMAT_STEPS\"; cat \"$0\"", plan.files[0].path};
  plan.files.push_back({(folder / "other").string(), "a\nEND_OF_FILE\n$HOME `x`", true});
  fs::create_directories(folder);
  write_file_atomically(folder / "script.sh", render_shell(plan));
  ASSERT_EQ(std::system(("sh '" + (folder / "script.sh").string() + "'").c_str()), 0);
  EXPECT_EQ(read_file(plan.log_path), "/\n" + plan.steps_path + "\n" + plan.files[0].content);
  EXPECT_EQ(read_file(folder / "other"), plan.files[1].content + "\n");
  EXPECT_NE(fs::status(folder / "other").permissions() & fs::perms::owner_exec, fs::perms::none);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tprimat::suite
