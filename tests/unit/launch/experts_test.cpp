#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "launch/expert_settings.h"
#include "launch/frameworks.h"
#include "launch/primus_experiment.h"
#include "text/json.h"
#include "unit/launch/changes.h"

// Mixtures of experts under Megatron-LM, Megatron-DeepSpeed and Primus.
namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

class ExpertsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.spec.model.experts = base_experts();
    request_.checkout.installation = folder_.string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  Experts& experts() { return *request_.spec.model.experts; }

  // The values of a flag; nothing where the command has no such flag.
  std::optional<std::vector<std::string>> flag(const std::string& name, Framework framework = Framework::mega) const {
    const TrainProgram program = require_framework(framework, request_.platform).plan(request_);
    const auto found = std::find(program.arguments.begin(), program.arguments.end(), name);
    if (found == program.arguments.end()) return std::nullopt;
    const auto end = std::find_if(found + 1, program.arguments.end(),
                                  [](const std::string& word) { return word.starts_with("--"); });
    return std::vector<std::string>(found + 1, end);
  }
  std::string refusal(Framework framework = Framework::mega) const {
    try {
      require_framework(framework, request_.platform).plan(request_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  bool refuses(const std::string& part, Framework framework = Framework::mega) const {
    return refusal(framework).find(part) != std::string::npos;
  }
  // A checkout whose configuration of Transformers has these fields.
  void install(const std::string& fields) const {
    write_file_atomically(folder_ / "megatron/core/transformer/transformer_config.py", fields);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("experts " + std::to_string(::getpid()));
  LaunchRequest request_ = base_request(Platform::nvd);
};

using Values = std::vector<std::string>;

TEST(ExpertLayers, AreThoseOfTheModel) {
  ModelSpec model = base_model();
  model.num_layers = 8;
  model.experts = base_experts();
  EXPECT_EQ(write_expert_layers(model), "([1]*8)");
  model.experts->first_dense_layers = 3;
  EXPECT_EQ(write_expert_layers(model), "([0]*3+[1]*5)");
  EXPECT_EQ(list_expert_layers(model), (std::vector<int64_t>{0, 0, 0, 1, 1, 1, 1, 1}));
  model.experts->first_dense_layers = 1, model.experts->layer_interval = 3;  // Llama 4: the last of each three
  EXPECT_EQ(write_expert_layers(model), "([0]*3+[1]+[0]*2+[1]+[0])");
  const std::vector<int64_t> layers = list_expert_layers(model);
  EXPECT_EQ(std::count(layers.begin(), layers.end(), 1), model.expert_layers());
}

TEST_F(ExpertsTest, MegatronGetsThemAsFlags) {
  experts() = {.count = 256,
               .per_token = 8,
               .ffn_hidden_size = 512,
               .shared_ffn_hidden_size = 1024,
               .first_dense_layers = 1,
               .router_score = RouterScore::sigmoid,
               .weight_scale = 2.5,
               .groups = 8,
               .groups_per_token = 4,
               .balancing = LoadBalancing::bias,
               .aux_loss_coefficient = 1e-4};
  request_.spec.parallel.expert = 4;
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"--num-experts", "256"},
                                          {"--moe-router-topk", "8"},
                                          {"--moe-ffn-hidden-size", "512"},
                                          {"--ffn-hidden-size", "1536"},
                                          {"--moe-shared-expert-intermediate-size", "1024"},
                                          {"--moe-layer-freq", "([0]+[1]*7)"},
                                          {"--moe-router-score-function", "sigmoid"},
                                          {"--moe-router-topk-scaling-factor", "2.5"},
                                          {"--moe-router-num-groups", "8"},
                                          {"--moe-router-group-topk", "4"},
                                          {"--moe-router-load-balancing-type", "seq_aux_loss"},
                                          {"--moe-aux-loss-coeff", "0.0001"},
                                          {"--moe-router-dtype", "fp32"},
                                          {"--moe-token-dispatcher-type", "alltoall"},
                                          {"--expert-model-parallel-size", "4"},
                                          {"--expert-tensor-parallel-size", "1"}})
    EXPECT_EQ(flag(name), Values{value}) << name;
  EXPECT_EQ(flag("--moe-grouped-gemm"), Values{});
  EXPECT_EQ(flag("--moe-router-enable-expert-bias"), Values{});
  for (const char* name : {"--moe-router-pre-softmax", "--moe-router-force-load-balancing", "--moe-z-loss-coeff",
                           "--moe-expert-capacity-factor", "--mtp-num-layers", "--multi-latent-attention"})
    EXPECT_EQ(flag(name), std::nullopt) << name;
}

TEST_F(ExpertsTest, ADenseModelGetsNone) {
  request_.spec.model.experts.reset();
  const TrainProgram program = require_framework(Framework::mega, Platform::nvd).plan(request_);
  for (const std::string& word : program.arguments)
    EXPECT_FALSE(word.starts_with("--moe") || word.starts_with("--expert") || word == "--num-experts") << word;
  EXPECT_TRUE(list_primus_overrides(request_)["num_experts"].is_null());
}

TEST_F(ExpertsTest, WeightsOfAllExpertsAreASoftmaxBeforeTheChoice) {
  EXPECT_EQ(flag("--moe-router-pre-softmax"), std::nullopt);
  experts().normalize_weights = false;
  EXPECT_EQ(flag("--moe-router-pre-softmax"), Values{});
  experts().per_token = 1;  // Switch
  EXPECT_EQ(flag("--moe-router-pre-softmax"), Values{});
  experts().normalize_weights = true;
  EXPECT_TRUE(refuses("weights a token's only expert by its score"));
}

TEST_F(ExpertsTest, WhatMegatronsRouterCannotDoIsRefused) {
  experts().router_score = RouterScore::sigmoid;
  EXPECT_EQ(refusal(), "");
  experts().normalize_weights = false;
  EXPECT_TRUE(refuses("always normalises sigmoid weights"));
  EXPECT_TRUE(refuses("models.base.experts"));
  experts() = base_experts();
  experts().balancing = LoadBalancing::bias;
  EXPECT_TRUE(refuses("balances experts by a bias only with sigmoid scores"));
}

TEST_F(ExpertsTest, LayoutsThatMegatronDoesNotTrainAreRefused) {
  request_.spec.parallel.tensor = 2;
  EXPECT_TRUE(refuses("trains experts with TP 2 only together with sequence parallelism"));
  request_.spec.parallel.sequence_parallel = true;
  EXPECT_EQ(refusal(), "");
  request_.spec.parallel.expert_tensor = 2;
  EXPECT_EQ(flag("--expert-tensor-parallel-size"), Values{"2"});
  request_.spec.model.linear_bias = true;
  EXPECT_TRUE(refuses("does not split experts that have biases"));
}

TEST_F(ExpertsTest, SwigluWithBiasesIsNotFused) {
  EXPECT_EQ(flag("--no-bias-swiglu-fusion"), std::nullopt);
  request_.spec.model.linear_bias = true;
  EXPECT_EQ(flag("--no-bias-swiglu-fusion"), Values{});
  EXPECT_FALSE(list_primus_overrides(request_)["bias_swiglu_fusion"].get<bool>());
}

TEST_F(ExpertsTest, AHybridIsRefused) {
  request_.spec.model.mamba = MambaMixers{};
  for (const Framework framework : {Framework::mega, Framework::mgds})
    EXPECT_TRUE(refuses("Mamba", framework)) << enum_name(framework);
}

TEST_F(ExpertsTest, FusedDispatchersFollowTheVersionOfTheCheckout) {
  request_.spec.parallel.expert = 4;
  request_.spec.dispatcher = Dispatcher::deepep;
  EXPECT_EQ(flag("--moe-token-dispatcher-type"), Values{"flex"});
  EXPECT_EQ(flag("--moe-flex-dispatcher-backend"), Values{"deepep"});  // no checkout here: the newest
  install("moe_enable_deepep: bool = False\n");
  EXPECT_EQ(flag("--moe-flex-dispatcher-backend"), std::nullopt);
  EXPECT_EQ(flag("--moe-enable-deepep"), Values{});
  request_.spec.dispatcher = Dispatcher::hybridep;
  EXPECT_TRUE(refuses("moe_flex_dispatcher_backend is not known to it"));
  install("moe_flex_dispatcher_backend: str\n");
  EXPECT_EQ(flag("--moe-flex-dispatcher-backend"), Values{"hybridep"});
  request_.platform = Platform::amd;
  EXPECT_TRUE(refuses("hybridep for NVIDIA GPUs only"));
  request_.platform = Platform::nvd;
  request_.spec.parallel.expert.reset();
  EXPECT_TRUE(refuses("needs EP x ETP above 1 for the dispatcher hybridep"));
}

TEST_F(ExpertsTest, SettingsOfNewerVersionsAreRefusedByAnOlderCheckout) {
  experts().shared_ffn_hidden_size = 512, experts().shared_gate = true;
  experts().latent_size = 256;
  EXPECT_EQ(flag("--moe-shared-expert-gate"), Values{});
  EXPECT_EQ(flag("--moe-latent-size"), Values{"256"});
  install("moe_latent_size: int\n");
  EXPECT_TRUE(refuses("moe_shared_expert_gate is not known to it"));
  EXPECT_FALSE(refuses("moe_latent_size"));
}

TEST_F(ExpertsTest, RoutingAndCapacityReachMegatron) {
  request_.spec.routing = Routing::balanced;
  experts().capacity_factor = 1.25;
  experts().z_loss_coefficient = 0.001;
  EXPECT_EQ(flag("--moe-router-force-load-balancing"), Values{});
  EXPECT_EQ(flag("--moe-expert-capacity-factor"), Values{"1.25"});
  EXPECT_EQ(flag("--moe-token-drop-policy"), Values{"probs"});
  EXPECT_EQ(flag("--moe-z-loss-coeff"), Values{"0.001"});
}

TEST_F(ExpertsTest, LatentAttentionAndFurtherTokens) {
  ModelSpec& model = request_.spec.model;
  model.latent_attention = LatentAttention{256, 128, 32, 64};
  model.prediction_layers = 1;
  EXPECT_EQ(flag("--q-lora-rank"), Values{"256"});
  EXPECT_EQ(flag("--kv-lora-rank"), Values{"128"});
  EXPECT_EQ(flag("--qk-head-dim"), Values{"64"});
  EXPECT_EQ(flag("--qk-pos-emb-head-dim"), Values{"32"});
  EXPECT_EQ(flag("--v-head-dim"), Values{"64"});
  EXPECT_EQ(flag("--qk-layernorm"), Values{});
  EXPECT_EQ(flag("--group-query-attention"), std::nullopt);  // Megatron-LM refuses both together
  EXPECT_EQ(flag("--rope-type"), Values{"rope"});
  EXPECT_EQ(flag("--no-rope-fusion"), Values{});
  EXPECT_EQ(flag("--mtp-num-layers"), Values{"1"});
  EXPECT_EQ(flag("--mtp-loss-scaling-factor"), Values{"0.1"});
  model.latent_attention->query_rank = 0;
  EXPECT_EQ(flag("--q-lora-rank"), std::nullopt);
  model.rope_scaling =
      RopeScaling{.type = RopeScalingKind::yarn, .factor = 40, .original_max_position_embeddings = 4096};
  EXPECT_EQ(flag("--rope-type"), Values{"yarn"});
  EXPECT_EQ(flag("--rotary-scaling-factor"), Values{"40"});
  EXPECT_EQ(flag("--no-rope-fusion"), std::nullopt);
}

TEST_F(ExpertsTest, WindowsInSomeLayersAndSinks) {
  ModelSpec& model = request_.spec.model;
  model.sliding_window = 128, model.attention_sinks = true;
  EXPECT_EQ(flag("--window-size"), Values{"127,0"});
  EXPECT_EQ(flag("--window-attn-skip-freq"), std::nullopt);
  EXPECT_EQ(flag("--softmax-type"), Values{"learnable"});
  request_.settings.flash_attention = true;
  EXPECT_EQ(flag("--attention-backend"), Values{"fused"});
  model.full_attention_layers = 4;
  EXPECT_EQ(flag("--window-attn-skip-freq"), Values{"2"});
  model.full_attention_layers = 3;
  EXPECT_TRUE(refuses("8 layers are no multiple of 3"));
}

TEST_F(ExpertsTest, MegatronDeepSpeedTrainsWhatItsGateComputes) {
  const auto of_mgds = [this](const std::string& name) { return flag(name, Framework::mgds); };
  experts().balancing = LoadBalancing::aux_loss, experts().aux_loss_coefficient = 0.02;
  request_.spec.parallel.expert = 4;
  EXPECT_EQ(of_mgds("--num-experts"), Values{"8"});
  EXPECT_EQ(of_mgds("--topk"), Values{"2"});
  EXPECT_EQ(of_mgds("--ffn-hidden-size"), Values{"512"});
  EXPECT_EQ(of_mgds("--expert-interval"), Values{"1"});
  EXPECT_EQ(of_mgds("--moe-expert-parallel-size"), Values{"4"});
  EXPECT_EQ(of_mgds("--moe-loss-coeff"), Values{"0.02"});
  EXPECT_EQ(of_mgds("--disable-moe-token-dropping"), Values{});
  EXPECT_EQ(of_mgds("--disable-moe-top2-2nd-expert-sampling"), Values{});
  experts().capacity_factor = 1.5;
  EXPECT_EQ(of_mgds("--disable-moe-token-dropping"), std::nullopt);
  EXPECT_EQ(of_mgds("--moe-train-capacity-factor"), Values{"1.5"});
  const std::vector<Deviation> deviations = require_framework(Framework::mgds, Platform::nvd).plan(request_).deviations;
  EXPECT_TRUE(std::ranges::any_of(deviations, [](const Deviation& each) { return each.key == "aux_loss"; }));
}

TEST_F(ExpertsTest, MegatronDeepSpeedSaysWhatItCannotDo) {
  const std::vector<std::pair<std::string, std::function<void(LaunchRequest&)>>> cases = {
      {"only softmax router scores",
       [](LaunchRequest& r) { r.spec.model.experts->router_score = RouterScore::sigmoid; }},
      {"normalises weights", [](LaunchRequest& r) { r.spec.model.experts->normalize_weights = false; }},
      {"does not scale", [](LaunchRequest& r) { r.spec.model.experts->weight_scale = 2; }},
      {"groups of experts", [](LaunchRequest& r) { r.spec.model.experts->groups = 2; }},
      {"has no shared experts", [](LaunchRequest& r) { r.spec.model.experts->shared_ffn_hidden_size = 64; }},
      {"dense layers", [](LaunchRequest& r) { r.spec.model.experts->first_dense_layers = 1; }},
      {"one ffn_hidden_size", [](LaunchRequest& r) { r.spec.model.experts->layer_interval = 2; }},
      {"no router z-loss", [](LaunchRequest& r) { r.spec.model.experts->z_loss_coefficient = 0.1; }},
      {"multi-head latent attention", [](LaunchRequest& r) { r.spec.model.latent_attention = LatentAttention{}; }},
      {"predict further tokens", [](LaunchRequest& r) { r.spec.model.prediction_layers = 1; }},
      {"cannot force balanced routing", [](LaunchRequest& r) { r.spec.routing = Routing::balanced; }},
      {"only one dispatcher", [](LaunchRequest& r) { r.spec.dispatcher = Dispatcher::deepep; }},
      {"ZeRO-3 with experts", [](LaunchRequest& r) { r.spec.parallel.zero_stage = 3; }}};
  for (const auto& [part, change] : cases) {
    const LaunchRequest whole = request_;
    change(request_);
    EXPECT_TRUE(refuses(part, Framework::mgds)) << part << ": " << refusal(Framework::mgds);
    request_ = whole;
  }
}

TEST_F(ExpertsTest, PrimusGetsThemAsKeys) {
  request_.platform = Platform::amd;
  request_.spec.parallel.expert = 4;
  request_.spec.routing = Routing::balanced;
  Json overrides = list_primus_overrides(request_);
  EXPECT_EQ(overrides["num_experts"].get<int64_t>(), 8);
  EXPECT_EQ(overrides["moe_layer_freq"].text(), "([1]*8)");
  EXPECT_EQ(overrides["expert_model_parallel_size"].get<int64_t>(), 4);
  EXPECT_TRUE(overrides["moe_router_force_load_balancing"].get<bool>());
  EXPECT_TRUE(overrides["moe_z_loss_coeff"].is_null());  // of no base
  EXPECT_FALSE(overrides["use_turbo_deepep"].get<bool>());
  request_.spec.dispatcher = Dispatcher::deepep;
  overrides = list_primus_overrides(request_);
  EXPECT_EQ(overrides["moe_token_dispatcher_type"].text(), "flex");
  for (const char* key : {"moe_enable_deepep", "use_turbo_deepep", "enable_primus_turbo"})
    EXPECT_TRUE(overrides[key].get<bool>()) << key;
  request_.spec.dispatcher = Dispatcher::hybridep;
  EXPECT_TRUE(refuses("has no key for the dispatcher hybridep", Framework::prim));
  request_.spec.dispatcher.reset();
  experts().shared_ffn_hidden_size = 512, experts().shared_gate = true;
  EXPECT_TRUE(refuses("has no key for a gate of the shared experts", Framework::prim));
}

}  // namespace
}  // namespace tprimat::suite
