// NeMo on AMD: which way it is started, and what Primus' experiment then states.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "launch/bridge_settings.h"
#include "launch/frameworks.h"
#include "unit/launch/changes.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

const FrameworkModule& nemo() { return require_framework(Framework::nemo, Platform::amd); }

std::string content(const LaunchPlan& plan, const std::string& ending) {
  for (const GeneratedFile& file : plan.files)
    if (file.path.ends_with(ending)) return file.content;
  ADD_FAILURE() << ending << " is not among the files";
  return {};
}

class NemoOnAmd : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("nemo on amd " + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = std::getenv("PATH");
    ::setenv("PATH", "/nowhere", 1);
    ::setenv("TPRIMAT_FRAMEWORKS", (folder_ / "environments").c_str(), 1);
    request_.checkout = {};
    request_.checkout.primus = primus().string();
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }

  fs::path primus() const { return folder_ / "Primus"; }

  void install_package(const std::string& version) const {
    const fs::path prefix = folder_ / "environments/nemo";
    fs::remove_all(prefix);
    fs::create_directories(prefix / "lib/python3.12/site-packages" / ("megatron_bridge-" + version + ".dist-info"));
    write_file_atomically(prefix / "bin/python3", "#!/bin/sh\n");
  }

  void install_primus(const std::string& loader) const {
    const fs::path backend = primus() / "primus/backends/megatron_bridge";
    write_file_atomically(primus() / "runner/primus-cli", "#!/bin/bash\n");
    write_file_atomically(primus() / ".git/HEAD", "fd1eeabbad15135e3702094087e96142b4b4eacb\n");
    write_file_atomically(backend / "megatron_bridge_pretrain_trainer.py", "");
    write_file_atomically(backend / "config_utils.py", loader);
    write_file_atomically(primus() / "third_party/Megatron-Bridge/src/megatron/bridge/package_info.py",
                          "MAJOR = 0\nMINOR = 3\nPATCH = 0\nPRE_RELEASE = \"rc0\"\n");
  }

  std::string refusal() const {
    try {
      plan_launch(nemo(), request_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  bool is_adapter() const { return plan_launch(nemo(), request_).steps_path.ends_with("steps.jsonl"); }

  fs::path folder_;
  std::string path_;
  LaunchRequest request_ = base_request(Platform::amd);
};

constexpr const char* k_loads_any = "    module = importlib.import_module(recipe)\n";

TEST_F(NemoOnAmd, IsPlannedByPrimusWhereNothingIsInstalled) {
  const LaunchPlan plan = plan_launch(nemo(), request_);
  EXPECT_EQ(plan.working_directory, primus().string());
  EXPECT_EQ(plan.steps_path, "");
  ASSERT_EQ(plan.remarks.size(), 1u);
  EXPECT_NE(plan.remarks[0].find("the way that AMD maintains"), std::string::npos);
  EXPECT_TRUE(plan.remarks[0].starts_with("neither a Python with Megatron-Bridge nor Primus")) << plan.remarks[0];
  EXPECT_FALSE(nemo().find(request_.checkout));
  request_.checkout.primus = "";
  EXPECT_EQ(plan_launch(nemo(), request_).working_directory, "/workspace/Primus");
}

TEST_F(NemoOnAmd, TakesACheckoutOfPrimusThatLoadsOurRecipe) {
  install_primus("module = importlib.import_module(full_module_path)\n");  // v26.4
  EXPECT_FALSE(nemo().find(request_.checkout));
  install_primus(k_loads_any);
  ASSERT_TRUE(nemo().find(request_.checkout));
  EXPECT_EQ(nemo().find(request_.checkout)->version, "0.3.0 in Primus fd1eeabbad15");
  EXPECT_EQ(nemo().find(request_.checkout)->place, primus().string());
  EXPECT_TRUE(plan_launch(nemo(), request_).remarks.empty());
  request_.checkout.primus.reset();  // on NVIDIA, Primus does not count
  EXPECT_FALSE(nemo().find(request_.checkout));
}

TEST_F(NemoOnAmd, PrefersAPythonWithMegatronBridge) {
  install_primus(k_loads_any);
  install_package("0.3.1");
  EXPECT_TRUE(is_adapter());
  EXPECT_EQ(nemo().find(request_.checkout)->version, "0.3.1");
  for (const char* version : {"0.3.0", "0.3.1rc0", "0.4.0rc1", "1.0", "0.3.0.post1", "0.3.0+rocm"}) {
    install_package(version);
    EXPECT_TRUE(is_adapter()) << version;
  }
  for (const char* version : {"0.2.2", "0.3.0rc0", "0.3.0.dev1", "0.3.0a1", "0.1"}) {
    install_package(version);
    EXPECT_FALSE(is_adapter()) << version;
    EXPECT_EQ(nemo().find(request_.checkout)->place, primus().string()) << version;
  }
}

TEST_F(NemoOnAmd, RefusesAnOldMegatronBridgeAlone) {
  install_package("0.2.2");
  EXPECT_NE(refusal().find("needs Megatron-Bridge 0.3 or later on AMD"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("nemo has 0.2.2"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("set PRIMUS_PATH to a checkout of Primus v26.5 or later"), std::string::npos) << refusal();
  EXPECT_FALSE(nemo().find(request_.checkout));
  request_.platform = Platform::nvd;
  request_.checkout.primus.reset();
  EXPECT_EQ(refusal(), "");
}

TEST_F(NemoOnAmd, AContainerHasThePrimusOfItsImageUnlessAPythonIsStated) {
  install_package("0.3.1");
  request_.launch.launcher = Launcher::docker;
  request_.launch.docker.image = "rocm/primus:v26.5";
  const LaunchPlan plan = plan_launch(nemo(), request_);
  EXPECT_EQ(plan.steps_path, "");
  EXPECT_TRUE(plan.remarks.empty());
  request_.checkout.installation = "/opt/venv";
  EXPECT_TRUE(is_adapter());
}

TEST_F(NemoOnAmd, TheAdapterHasAmdsAttentionAndPrecisions) {
  install_package("0.3.1");
  request_.settings.flash_attention = true;
  LaunchPlan plan = plan_launch(nemo(), request_);
  EXPECT_EQ(plan.environment.at("NVTE_FUSED_ATTN"), "1");
  EXPECT_EQ(content(plan, "nemo_settings.json").find("flash_attention"), std::string::npos);
  request_.settings.flash_attention = false;
  plan = plan_launch(nemo(), request_);
  EXPECT_EQ(plan.environment.at("NVTE_UNFUSED_ATTN"), "1");
  EXPECT_NE(content(plan, "nemo_settings.json").find("\"flash_attention\": false"), std::string::npos);
  request_.spec.precision = Precision::fp32;
  EXPECT_EQ(refusal(), "");
  request_.spec.precision = Precision::tf32;
  EXPECT_NE(refusal().find("does not train in tf32 on AMD"), std::string::npos) << refusal();
}

TEST_F(NemoOnAmd, StartsPrimusWithOurRecipe) {
  request_.paths.folder = "/out/a run";
  request_.spec.data.dataset = "data/tokens";
  const LaunchPlan plan = plan_launch(nemo(), request_);
  EXPECT_EQ(plan.command, (std::vector<std::string>{"sh", "/out/a run/primus.sh"}));
  EXPECT_EQ(plan.environment.at("GPUS_PER_NODE"), "4");
  EXPECT_EQ(plan.environment.at("TPRIMAT_PROGRAM"), "/usr/bin/tprimat");
  const std::string script = content(plan, "primus.sh");
  EXPECT_NE(script.find("export PYTHONPATH='/out/a run/adapter'${PYTHONPATH:+:$PYTHONPATH}\n"), std::string::npos);
  EXPECT_NE(script.find("exec bash runner/primus-cli direct --log_file '/out/a run/primus.log' -- train pretrain "
                        "--config '/out/a run/primus.yaml'\n"),
            std::string::npos)
      << script;
  EXPECT_NE(content(plan, "adapter/tprimat_adapter/primus_recipe.py").find("def pretrain_config("), std::string::npos);
  EXPECT_NE(content(plan, "adapter/tprimat_adapter/bridge.py"), "");
  EXPECT_NE(content(plan, "train_spec.json").find("\"/here/data/tokens\""), std::string::npos);
  const auto timing = [](const Deviation& each) { return each.key == "schedule_timing"; };
  EXPECT_EQ(std::ranges::count_if(plan.deviations, timing), 1);
}

TEST_F(NemoOnAmd, ItsExperimentStatesTheTraining) {
  request_.spec.recompute = Recompute::selective;
  request_.spec.model.sliding_window = 1024;
  const std::string text = content(plan_launch(nemo(), request_), "primus.yaml");
  for (const char* line :
       {"    framework: megatron_bridge\n    config: pretrain_trainer.yaml\n", "      recipe: \"tprimat_adapter.primus",
        "      flavor: \"pretrain_config\"\n", "      nemo_recipe: \"llama31_8b.pretrain_recipe\"\n",
        "      precision_config: \"bf16_mixed\"\n", "        dataset: \"/data/tokens\"\n",
        "        train_spec: \"/out/runs/x/train_spec.json\"\n", "      settings:\n        model:\n",
        "          num_query_groups: 4\n", "          layernorm_epsilon: 1.0e-05\n",
        "          window_size: [1023,0]\n", "          activation_func: \"silu\"\n",
        "          recompute_modules: [\"core_attn\"]\n", "          vocab_size: null\n",
        "          train_iters: 100\n", "          lr_warmup_iters: 10\n", "          vocab_size: 32000\n",
        "          overlap_param_gather: false\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST_F(NemoOnAmd, RefusesWhatPrimusCannotDo) {
  request_.spec.parallel = {.pipeline = 2, .data = 2};
  EXPECT_NE(refusal().find("Primus logs rank 0, which does not know the loss"), std::string::npos) << refusal();
  request_.spec.parallel = {.data = 4};
  request_.spec.model.rope_scaling = RopeScaling{};
  EXPECT_NE(refusal().find("has no llama3 rope_scaling where Primus starts it"), std::string::npos) << refusal();
  request_.spec.model.rope_scaling->type = RopeScalingKind::linear;
  EXPECT_EQ(refusal(), "");
  request_.settings.visible_devices = "4,5,6,7";
  EXPECT_NE(refusal().find("always trains on devices 0,1,2,3"), std::string::npos) << refusal();
  install_package("0.3.1");
  EXPECT_EQ(refusal(), "");
}

// The experiment file alone, without train_spec.json beside it.
TEST_F(NemoOnAmd, EveryChangedSettingIsInTheExperimentOfPrimus) {
  request_.spec.parallel = {.tensor = 4, .data = 2, .sequence_parallel = true};
  const auto seen = [](const LaunchRequest& request) {
    const LaunchPlan plan = plan_launch(nemo(), request);
    return content(plan, "primus.yaml") + plan.environment.at("GPUS_PER_NODE");
  };
  std::vector<Change> changes = optimizer_changes();
  for (const auto& list : {training_changes(), layout_changes(), model_changes()})
    changes.insert(changes.end(), list.begin(), list.end());
  changes.push_back({"flash_attention", [](LaunchRequest& r) { r.settings.flash_attention = false; }});
  // Positions are rotary and have no table; evaluations, checkpoints and reproducibility are not NeMo's here.
  const std::set<std::string_view> silent = {"max_position_embeddings", "evaluation", "checkpoints", "deterministic"};
  std::set<std::string_view> lost;
  for (const Change& change : changes) {
    LaunchRequest changed = request_;
    change.apply(changed);
    try {
      if (seen(changed) == seen(request_)) lost.insert(change.key);
    } catch (const Error&) {  // refused
    }
  }
  for (const std::string_view key : lost) EXPECT_TRUE(silent.contains(key)) << key << " is lost";
  request_.spec.precision = Precision::fp8;
  const std::string hybrid = seen(request_);
  request_.settings.fp8_hybrid = false;
  const std::string e4m3 = seen(request_);
  request_.settings.fp8_param = true;
  EXPECT_NE(e4m3, hybrid);
  EXPECT_NE(seen(request_), e4m3);
}

// Fields of the classes of Megatron-Bridge and Megatron Core, with the file and commit where they stand.
TEST_F(NemoOnAmd, EverySettingIsOneThatMegatronBridgeKnows) {
  std::istringstream lines(read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/golden/launch/bridge_keys.tsv"));
  std::set<std::string> known, stated;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) known.insert(line.substr(0, line.find('\t')));
  EXPECT_GT(known.size(), 90u);
  for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::fp8}) {
    request_.spec.precision = precision;
    for (const StatedSetting& each : state_bridge_settings(request_)) stated.insert(each.name);
  }
  EXPECT_EQ(stated, known);
}

TEST_F(NemoOnAmd, StatesWhatTheLogMustShow) {
  std::map<std::string, StatedSetting> stated;
  for (const StatedSetting& each : plan_launch(nemo(), request_).stated) stated[each.name] = each;
  EXPECT_EQ(stated.at("optimizer.lr").key, "learning_rate");
  EXPECT_EQ(stated.at("train.train_iters").value, "100");
  EXPECT_EQ(stated.at("model.activation_func").value, "silu");
  EXPECT_EQ(stated.at("model.vocab_size").value, "32000");  // where the tokenizer's has arrived
  EXPECT_EQ(stated.at("logger.tensorboard_dir").key, "logger.tensorboard_dir");
  install_package("0.3.1");
  EXPECT_TRUE(plan_launch(nemo(), request_).stated.empty());  // the adapter prints what holds
}

}  // namespace
}  // namespace tprimat::suite
