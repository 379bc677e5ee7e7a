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
#include "launch/frameworks.h"
#include "launch/installed.h"
#include "launch/primus_experiment.h"
#include "spec/model_catalogue.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

std::optional<Installation> find_nemo(const Checkout& checkout) {
  return require_framework(Framework::nemo, Platform::nvd).find(checkout);
}
TrainProgram plan_nemo(const LaunchRequest& request) {
  return require_framework(Framework::nemo, Platform::nvd).plan(request);
}
std::optional<Installation> find_prim(const Checkout& checkout) {
  return require_framework(Framework::prim, Platform::amd).find(checkout);
}
TrainProgram plan_prim(const LaunchRequest& request) {
  return require_framework(Framework::prim, Platform::amd).plan(request);
}

class MegatronCoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("launch megatron core " + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = std::getenv("PATH");
    ::setenv("TPRIMAT_FRAMEWORKS", (folder_ / "environments").c_str(), 1);
    request_.spec.model = find_model("llama3.1_8b").value();
    request_.spec.model.name = "llama";
    request_.spec.steps = 500;
    request_.spec.sequence_length = 2048;
    request_.spec.global_batch_size = 128;
    request_.spec.optimizer.warmup_steps = 50;
    request_.spec.parallel = {.tensor = 4, .data = 2};
    request_.paths = {"/out/runs/a", "/out/a.log", "/out/a.json", "/"};
    request_.own_program = "/opt/tprimat";
    request_.checkout.installation = (folder_ / "Primus").string();
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }

  static std::string complaint(TrainProgram (*plan)(const LaunchRequest&), const LaunchRequest& request) {
    try {
      plan(request);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  static std::string content(const TrainProgram& program, const std::string& path) {
    for (const GeneratedFile& file : program.files)
      if (file.path == path) return file.content;
    ADD_FAILURE() << path << " is not among the files";
    return {};
  }
  void install_bridge(const fs::path& prefix, const std::string& packages) const {
    fs::create_directories(prefix / "lib" / "python3.12" / packages / "megatron_bridge-0.3.1.dist-info");
    write_file_atomically(prefix / "bin" / "python3", "#!/bin/sh\n");
  }

  fs::path folder_;
  std::string path_;
  LaunchRequest request_;
};

using NemoTest = MegatronCoreTest;
using PrimTest = MegatronCoreTest;

TEST_F(NemoTest, IsFoundInItsEnvironmentInPathAndWhereTheConfigurationSays) {
  ::setenv("PATH", (folder_ / "container" / "bin").c_str(), 1);
  EXPECT_FALSE(find_nemo({}));
  install_bridge(folder_ / "container", "dist-packages");
  ASSERT_TRUE(find_nemo({}));
  EXPECT_EQ(find_nemo({})->version, "0.3.1");
  EXPECT_EQ(find_nemo({})->place, (folder_ / "container").string());
  install_bridge(folder_ / "environments" / "nemo", "site-packages");
  EXPECT_EQ(find_nemo({})->place, (folder_ / "environments" / "nemo").string());
  Checkout stated;
  stated.installation = (folder_ / "elsewhere").string();
  EXPECT_FALSE(find_nemo(stated));
  install_bridge(folder_ / "elsewhere", "site-packages");
  EXPECT_EQ(find_nemo(stated)->place, stated.installation);
}

TEST_F(NemoTest, PlansTheAdapterUnderTorchrun) {
  request_.checkout = {};
  request_.model_notes.nemo_recipe = "llama31_8b.pretrain_recipe";
  request_.spec.precision = Precision::fp8;
  request_.settings.fp8_hybrid = true;
  request_.settings.fp8_param = false;
  request_.settings.flash_attention = true;
  ::setenv("PATH", "/nowhere", 1);
  const TrainProgram program = plan_nemo(request_);
  EXPECT_EQ(program.arguments,
            (std::vector<std::string>{"/out/runs/a/adapter/train_nemo.py", "--spec", "/out/runs/a/train_spec.json"}));
  EXPECT_EQ(program.start, RankStart::torchrun);
  EXPECT_EQ(program.python, (folder_ / "environments/nemo/bin/python3").string());
  EXPECT_EQ(program.environment.at("TPRIMAT_STEPS"), "/out/runs/a/steps.jsonl");
  EXPECT_EQ(program.environment.at("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  const Json spec = parse_json(content(program, "/out/runs/a/train_spec.json"), "spec");
  EXPECT_EQ(train_spec_from_json(spec, "spec"), request_.spec);
  EXPECT_EQ(parse_json(content(program, "/out/runs/a/nemo_settings.json"), "settings"),
            parse_json(R"({"recipe": "llama31_8b.pretrain_recipe", "flash_attention": true, "fp8_hybrid": true,
                            "fp8_param": false})",
                       ""));
  EXPECT_NE(content(program, "/out/runs/a/adapter/train_nemo.py").find("megatron.bridge"), std::string::npos);
  EXPECT_NE(content(program, "/out/runs/a/adapter/tprimat_adapter/samples.py"), "");
}

TEST_F(NemoTest, WhatIsNotStatedIsNotSaid) {
  request_.settings.fp8_hybrid = true;  // of no meaning in bf16
  request_.spec.parallel = {.data = 8};
  const TrainProgram program = plan_nemo(request_);
  EXPECT_EQ(content(program, "/out/runs/a/nemo_settings.json"), "{}\n");
  EXPECT_EQ(program.environment.count("CUDA_DEVICE_MAX_CONNECTIONS"), 0u);
}

struct Refusal {
  const char* sentence;
  void (*change)(LaunchRequest&);
};

TEST_F(MegatronCoreTest, WhatMegatronCoreDoesNotDoIsRefused) {
  const Refusal refusals[] = {
      {"not yarn", [](LaunchRequest& r) { r.spec.model.rope_scaling = RopeScaling{RopeScalingKind::yarn}; }},
      {"low_freq_factor 1", [](LaunchRequest& r) { r.spec.model.rope_scaling = RopeScaling{.high_freq_factor = 3.0}; }},
      {"learns one position per token", [](LaunchRequest& r) { r.spec.model.position = PositionKind::learned; }},
      {"does not support ZeRO-2", [](LaunchRequest& r) { r.spec.parallel.zero_stage = 2; }},
      {"random weights only", [](LaunchRequest& r) { r.spec.checkpoint.initial_weights = "/weights"; }},
      {"2·CP parts",
       [](LaunchRequest& r) {
         r.spec.parallel.context = 2;
         r.spec.sequence_length = 1023;
       }},
  };
  for (const Refusal& refusal : refusals) {
    LaunchRequest request = request_;
    refusal.change(request);
    EXPECT_NE(complaint(plan_nemo, request).find("'nemo' "), std::string::npos) << refusal.sentence;
    EXPECT_NE(complaint(plan_nemo, request).find(refusal.sentence), std::string::npos) << complaint(plan_nemo, request);
    EXPECT_NE(complaint(plan_prim, request).find(refusal.sentence), std::string::npos) << complaint(plan_prim, request);
  }
  EXPECT_EQ(complaint(plan_nemo, request_), "");
  EXPECT_EQ(complaint(plan_prim, request_), "");
}

TEST_F(NemoTest, RefusesWhatItsLayersWouldNotCompute) {
  request_.spec.precision = Precision::fp32;
  EXPECT_NE(complaint(plan_nemo, request_).find("multiplies such matrices in TF32"), std::string::npos);
  request_.spec.precision = Precision::tf32;
  EXPECT_EQ(complaint(plan_nemo, request_), "");
  request_.spec.model.sliding_window = 128;
  EXPECT_EQ(complaint(plan_nemo, request_), "");
  request_.spec.parallel.context = 2;
  EXPECT_NE(complaint(plan_nemo, request_).find("does not support a sliding window with context"), std::string::npos);
}

TEST_F(PrimTest, IsFoundByItsFolderAndNamedByItsCommit) {
  EXPECT_FALSE(find_prim(request_.checkout));
  const fs::path checkout = request_.checkout.installation;
  fs::create_directories(checkout / "primus");
  EXPECT_FALSE(find_prim(request_.checkout));
  write_file_atomically(checkout / "examples/run_pretrain.sh", "#!/bin/bash\n");
  ASSERT_TRUE(find_prim(request_.checkout));
  EXPECT_EQ(find_prim(request_.checkout)->version, "not known");
  write_file_atomically(checkout / ".git/HEAD", "ref: refs/heads/main\n");
  write_file_atomically(checkout / ".git/refs/heads/main", "0121ab7d26cf0e4cb569def6109aaac661a7806c\n");
  EXPECT_EQ(find_prim(request_.checkout)->version, "0121ab7d26cf");
  EXPECT_EQ(find_prim(request_.checkout)->place, request_.checkout.installation);
  request_.checkout.run_script = "./examples/other.sh";
  EXPECT_FALSE(find_prim(request_.checkout));
}

TEST_F(MegatronCoreTest, ARevisionIsReadFromEveryKindOfCheckout) {
  EXPECT_FALSE(find_checkout_revision(folder_));
  write_file_atomically(folder_ / "detached/.git/HEAD", "1111111111112222\n");
  EXPECT_EQ(find_checkout_revision(folder_ / "detached"), "111111111111");
  write_file_atomically(folder_ / "packed/.git/HEAD", "ref: refs/heads/main\n");
  EXPECT_FALSE(find_checkout_revision(folder_ / "packed"));
  write_file_atomically(folder_ / "packed/.git/packed-refs",
                        "# pack-refs with: peeled\n3333333333334444 refs/heads/main\n");
  EXPECT_EQ(find_checkout_revision(folder_ / "packed"), "333333333333");
  write_file_atomically(folder_ / "submodule/.git", "gitdir: ../detached/.git\n");
  EXPECT_EQ(find_checkout_revision(folder_ / "submodule"), "111111111111");
  write_file_atomically(folder_ / "trees/one/HEAD", "ref: refs/heads/main\n");
  write_file_atomically(folder_ / "trees/one/commondir", "../../packed/.git\n");
  write_file_atomically(folder_ / "worktree/.git", "gitdir: " + (folder_ / "trees/one").string() + "\n");
  EXPECT_EQ(find_checkout_revision(folder_ / "worktree"), "333333333333");
  write_file_atomically(folder_ / "packed/VERSION", "26.7.1\n");
  EXPECT_EQ(find_checkout_revision(folder_ / "packed"), "26.7.1");
}

TEST_F(PrimTest, PlansTheScriptOfTheCheckout) {
  const TrainProgram program = plan_prim(request_);
  EXPECT_EQ(program.arguments, (std::vector<std::string>{"bash", "examples/run_pretrain.sh"}));
  EXPECT_EQ(program.start, RankStart::per_node);
  EXPECT_EQ(program.working_directory, request_.checkout.installation);
  EXPECT_EQ(program.steps_path, "");
  EXPECT_EQ(program.environment.at("EXP"), "/out/runs/a/primus.yaml");
  EXPECT_EQ(program.environment.at("GPUS_PER_NODE"), "8");
  request_.checkout.run_script = "./own.sh";
  EXPECT_EQ(plan_prim(request_).arguments[1], "./own.sh");
  request_.checkout.installation.clear();
  EXPECT_EQ(plan_prim(request_).working_directory, "/workspace/Primus");
}

TEST_F(PrimTest, ItsExperimentFileSaysEverything) {
  request_.spec.optimizer.epsilon = 1e-8;
  request_.spec.data = {"/data/corpus_text", "1"};
  const std::string text = content(plan_prim(request_), "/out/runs/a/primus.yaml");
  EXPECT_EQ(text.find("extends"), std::string::npos);
  for (const char* line :
       {"exp_name: \"llama\"\n", "workspace: \"/out/runs/a/primus\"\n", "    config: pre_trainer.yaml\n",
        "    model: language_model.yaml\n", "      num_query_groups: 8\n", "      rotary_base: 500000.0\n",
        "      norm_epsilon: 1.0e-05\n", "      adam_eps: 1.0e-08\n", "      lr: 0.0003\n", "      mock_data: false\n",
        "      train_data_path: \"/data/corpus_text\"\n", "      split: null\n", "      clip_grad: 1.0\n",
        "      tensor_model_parallel_size: 4\n", "      overlap_grad_reduce: true\n", "      vocab_size: 128255\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST_F(PrimTest, AModelsOwnFileIsWhatItExtends) {
  request_.model_notes.primus_config = "examples/megatron/configs/MI300X/llama3.1_8B-BF16-pretrain.yaml";
  std::string text = write_primus_experiment(request_);
  EXPECT_TRUE(text.starts_with("extends: [\"" + request_.checkout.installation + "/examples/megatron/configs/MI300X/"));
  EXPECT_EQ(text.find("overlap_grad_reduce"), std::string::npos);  // as that file has it
  EXPECT_NE(text.find("overlap_param_gather: false"), std::string::npos);
  request_.model_notes.primus_config = "own.yaml";
  request_.checkout.config_dir = "configs";
  text = write_primus_experiment(request_);
  EXPECT_TRUE(text.starts_with("extends: [\"" + request_.checkout.installation + "/configs/own.yaml\"]\n")) << text;
}

TEST_F(PrimTest, AttentionIsChosenByTheEnvironmentToo) {
  EXPECT_EQ(plan_prim(request_).environment.count("NVTE_FUSED_ATTN"), 0u);
  request_.settings.flash_attention = true;
  EXPECT_EQ(plan_prim(request_).environment.at("NVTE_FUSED_ATTN"), "1");
  EXPECT_EQ(list_primus_overrides(request_)["attention_backend"], "auto");
  request_.settings.flash_attention = false;
  EXPECT_EQ(plan_prim(request_).environment.at("NVTE_FLASH_ATTN"), "0");
  EXPECT_EQ(plan_prim(request_).environment.at("NVTE_FUSED_ATTN"), "0");
  EXPECT_EQ(plan_prim(request_).environment.at("NVTE_UNFUSED_ATTN"), "1");
  EXPECT_EQ(list_primus_overrides(request_)["attention_backend"], "unfused");
}

TEST_F(PrimTest, RefusesWhatItCannotDo) {
  request_.spec.data = {"/data/corpus", "90,10,0"};
  EXPECT_NE(complaint(plan_prim, request_).find("the split is 90,10,0"), std::string::npos);
  request_.spec.data = {"/data/a corpus", "100,0,0"};
  EXPECT_NE(complaint(plan_prim, request_).find("splits the data set path '/data/a corpus'"), std::string::npos);
  request_.spec.data = {};
  request_.spec.model.sliding_window = 4096;
  EXPECT_EQ(complaint(plan_prim, request_), "");
  request_.spec.model.sliding_window = 1024;
  EXPECT_NE(complaint(plan_prim, request_).find("does not support a sliding window"), std::string::npos);
  request_.spec.model.sliding_window.reset();
  request_.spec.model.rope_scaling = RopeScaling{.factor = 32.0};
  EXPECT_NE(complaint(plan_prim, request_).find("only the rope_scaling of Llama 3.1"), std::string::npos);
  EXPECT_EQ(complaint(plan_nemo, request_), "");
  request_.spec.model.rope_scaling.reset();
  request_.spec.parallel.ends_as_layers = true;
  EXPECT_NE(complaint(plan_prim, request_).find("cannot count the embedding and the loss"), std::string::npos);
  EXPECT_EQ(complaint(plan_nemo, request_), "");
  request_.spec.parallel.ends_as_layers = false;
  request_.spec.precision = Precision::tf32;
  EXPECT_NE(complaint(plan_prim, request_).find("does not train in tf32"), std::string::npos);
}

struct KeyChange {
  const char* name;
  void (*change)(LaunchRequest&);
};

// The keys of an experiment, each changed alone.
const KeyChange k_changes[] = {
    {"learning rate", [](LaunchRequest& r) { r.spec.optimizer.learning_rate = 1e-5; }},
    {"least learning rate", [](LaunchRequest& r) { r.spec.optimizer.min_learning_rate = 1e-6; }},
    {"warm-up", [](LaunchRequest& r) { r.spec.optimizer.warmup_steps = 3; }},
    {"schedule", [](LaunchRequest& r) { r.spec.optimizer.schedule = ScheduleKind::linear; }},
    {"beta1", [](LaunchRequest& r) { r.spec.optimizer.beta1 = 0.8; }},
    {"beta2", [](LaunchRequest& r) { r.spec.optimizer.beta2 = 0.99; }},
    {"epsilon", [](LaunchRequest& r) { r.spec.optimizer.epsilon = 1e-7; }},
    {"weight decay", [](LaunchRequest& r) { r.spec.optimizer.weight_decay = 0.2; }},
    {"clipping", [](LaunchRequest& r) { r.spec.optimizer.clip_grad_norm = 0.5; }},
    {"seed", [](LaunchRequest& r) { r.spec.seed = 7; }},
    {"MBS", [](LaunchRequest& r) { r.spec.micro_batch_size = 2; }},
    {"GBS", [](LaunchRequest& r) { r.spec.global_batch_size = 64; }},
    {"SL", [](LaunchRequest& r) { r.spec.sequence_length = 1024; }},
    {"steps", [](LaunchRequest& r) { r.spec.steps = 400; }},
    {"TP", [](LaunchRequest& r) { r.spec.parallel.tensor = 2; }},
    {"PP", [](LaunchRequest& r) { r.spec.parallel.pipeline = 2; }},
    {"VP", [](LaunchRequest& r) { r.spec.parallel.virtual_pipeline = 2; }},
    {"DP", [](LaunchRequest& r) { r.spec.parallel.data = 4; }},
    {"CP", [](LaunchRequest& r) { r.spec.parallel.context = 2; }},
    {"SP", [](LaunchRequest& r) { r.spec.parallel.sequence_parallel = true; }},
    {"ZeRO", [](LaunchRequest& r) { r.spec.parallel.zero_stage = 1; }},
    {"fp16", [](LaunchRequest& r) { r.spec.precision = Precision::fp16; }},
    {"fp8", [](LaunchRequest& r) { r.spec.precision = Precision::fp8; }},
    {"recompute", [](LaunchRequest& r) { r.spec.recompute = Recompute::full; }},
    {"some recompute", [](LaunchRequest& r) { r.spec.recompute = Recompute::selective; }},
    {"data set", [](LaunchRequest& r) { r.spec.data.dataset = "/data/corpus"; }},
    {"split", [](LaunchRequest& r) { r.spec.data.split = "1,0,0"; }},
    {"flash attention", [](LaunchRequest& r) { r.settings.flash_attention = false; }},
    {"layers", [](LaunchRequest& r) { r.spec.model.num_layers = 16; }},
    {"hidden size", [](LaunchRequest& r) { r.spec.model.hidden_size = 2048; }},
    {"inner width", [](LaunchRequest& r) { r.spec.model.ffn_hidden_size = 8192; }},
    {"heads", [](LaunchRequest& r) { r.spec.model.num_attention_heads = 16; }},
    {"key heads", [](LaunchRequest& r) { r.spec.model.num_key_value_heads = 4; }},
    {"head width", [](LaunchRequest& r) { r.spec.model.head_dim = 64; }},
    {"vocabulary", [](LaunchRequest& r) { r.spec.model.vocab_size = 32000; }},
    {"positions", [](LaunchRequest& r) { r.spec.model.max_position_embeddings = 8192; }},
    {"tied", [](LaunchRequest& r) { r.spec.model.tied_embeddings = true; }},
    {"query bias", [](LaunchRequest& r) { r.spec.model.qkv_bias = true; }},
    {"all biases", [](LaunchRequest& r) { r.spec.model.linear_bias = true; }},
    {"query norm", [](LaunchRequest& r) { r.spec.model.qk_norm = true; }},
    {"norm", [](LaunchRequest& r) { r.spec.model.norm = NormKind::layer; }},
    {"mlp", [](LaunchRequest& r) { r.spec.model.mlp = MlpKind::gelu; }},
    {"theta", [](LaunchRequest& r) { r.spec.model.rope_theta = 10000; }},
    {"stretching", [](LaunchRequest& r) { r.spec.model.rope_scaling = RopeScaling{}; }},
    {"norm epsilon", [](LaunchRequest& r) { r.spec.model.norm_eps = 1e-6; }},
    {"anomalies", [](LaunchRequest& r) { r.spec.anomalies.not_finite = OnAnomaly::skip; }},
    {"loss scale", [](LaunchRequest& r) { r.spec.loss_scale.initial = 1024; }},
    {"window of the scale", [](LaunchRequest& r) { r.spec.loss_scale.window = 10; }},
    {"least scale", [](LaunchRequest& r) { r.spec.loss_scale.minimum = 2; }},
    {"experts",
     [](LaunchRequest& r) {
       r.spec.model.experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 1024, .capacity_factor = 1.5};
       r.spec.model.latent_attention = LatentAttention{256, 128, 32, 64};
       r.spec.model.rope_scaling.reset();
       r.spec.model.prediction_layers = 1, r.spec.model.linear_bias = true;
       r.spec.parallel.sequence_parallel = true, r.spec.parallel.expert = 2;
       r.spec.dispatcher = Dispatcher::deepep;
     }},
    {"profile",
     [](LaunchRequest& r) {
       r.profile = ProfileWindow{Profiler::torch, 11, 15, "/out/p", false};
     }},
};

std::string all_that_primus_sees(const LaunchRequest& request) {
  const TrainProgram program = plan_prim(request);
  return write_primus_experiment(request) + program.environment.at("GPUS_PER_NODE");
}

TEST_F(PrimTest, EveryKeyOfAnExperimentReachesPrimus) {
  std::map<std::string, std::string> seen = {{all_that_primus_sees(request_), "the experiment itself"}};
  for (const KeyChange& change : k_changes) {
    LaunchRequest request = request_;
    change.change(request);
    const auto [place, is_new] = seen.emplace(all_that_primus_sees(request), change.name);
    EXPECT_TRUE(is_new) << change.name << " gives the same as " << place->second;
  }
  request_.spec.precision = Precision::fp8;
  const std::string hybrid = all_that_primus_sees(request_);
  request_.settings.fp8_hybrid = false;
  const std::string e4m3 = all_that_primus_sees(request_);
  request_.settings.fp8_param = true;
  EXPECT_NE(e4m3, hybrid);
  EXPECT_NE(all_that_primus_sees(request_), e4m3);
  EXPECT_TRUE(list_primus_overrides(request_)["use_distributed_optimizer"].get<bool>());  // Megatron's fp8 weights
}

// What Primus' own files hold: each key with its default and the file and commit where it stands.
TEST_F(PrimTest, EveryKeyIsOneThatPrimusKnows) {
  std::istringstream lines(read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/golden/launch/primus_keys.tsv"));
  std::set<std::string> known;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) known.insert(line.substr(0, line.find('\t')));
  EXPECT_GT(known.size(), 80u);
  std::set<std::string> stated;
  for (const KeyChange& change : k_changes) {
    LaunchRequest request = request_;
    change.change(request);
    const Json overrides = list_primus_overrides(request);
    for (const auto& [key, value] : overrides.items()) stated.insert(key);
  }
  for (const std::string& key : stated) EXPECT_EQ(known.count(key), 1u) << key;
  for (const std::string& key : known) EXPECT_EQ(stated.count(key), 1u) << key << " is in the table and never stated";
}

}  // namespace
}  // namespace tprimat::suite
