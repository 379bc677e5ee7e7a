// Mixtures of experts and latent attention under torchtitan.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "launch/frameworks.h"
#include "launch/torchtitan_config.h"
#include "unit/launch/changes.h"

namespace tprimat::suite {
namespace {

class TitanExperts : public ::testing::Test {
 protected:
  void SetUp() override { request_.spec.model.experts = base_experts(); }

  Experts& experts() { return *request_.spec.model.experts; }
  LaunchPlan plan() const { return plan_launch(require_framework(Framework::tita, request_.platform), request_); }
  std::string refusal() const {
    try {
      plan();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  Json setting(const std::string& section, const std::string& key) const {
    return list_titan_settings(request_).at(section).at(key);
  }
  std::map<std::string, std::string> deviations() const {
    std::map<std::string, std::string> found;
    for (const Deviation& each : plan().deviations) found[each.key] = each.effective;
    return found;
  }
  void make_deepseek() {
    request_.spec.model.latent_attention = LatentAttention{256, 128, 32, 64};
    request_.spec.model.num_key_value_heads = 8;
    experts() = {.count = 64,
                 .per_token = 8,
                 .ffn_hidden_size = 256,
                 .shared_ffn_hidden_size = 256,
                 .first_dense_layers = 1,
                 .router_score = RouterScore::sigmoid,
                 .weight_scale = 2.5,
                 .groups = 8,
                 .groups_per_token = 4,
                 .balancing = LoadBalancing::bias};
  }
  void make_gpt_oss() {
    ModelSpec& model = request_.spec.model;
    model.attention_sinks = model.linear_bias = true;
    model.sliding_window = 128, model.full_attention_layers = 4;
  }

  LaunchRequest request_ = base_request(Platform::nvd);
};

TEST_F(TitanExperts, AShapeIsOneOfTorchtitansModels) {
  EXPECT_EQ(setting("model", "name"), "llama4");
  request_.spec.model.qk_norm = true;
  EXPECT_EQ(setting("model", "name"), "qwen3");
  request_.spec.model.qk_norm = false;
  make_gpt_oss();
  EXPECT_EQ(setting("model", "name"), "gpt_oss");
  EXPECT_EQ(refusal(), "");
  request_ = base_request(Platform::nvd);
  request_.spec.model.experts = base_experts();
  make_deepseek();
  EXPECT_EQ(setting("model", "name"), "deepseek_v3");
  EXPECT_EQ(refusal(), "");
  request_.spec.model.experts.reset();  // latent attention alone
  EXPECT_EQ(setting("model", "name"), "deepseek_v3");
  EXPECT_EQ(refusal(), "");
  request_.spec.model.latent_attention.reset();
  EXPECT_EQ(setting("model", "name"), "llama3");
}

TEST_F(TitanExperts, TheLayoutAndTheExchangeAreInItsFile) {
  make_deepseek();
  request_.spec.parallel.data = 8;
  request_.spec.parallel.expert = 4;
  EXPECT_EQ(setting("parallelism", "expert_parallel_degree"), 4);
  EXPECT_EQ(setting("parallelism", "expert_tensor_parallel_degree"), 1);
  EXPECT_EQ(setting("parallelism", "expert_parallel_comm_backend"), "standard");
  EXPECT_EQ(setting("debug", "moe_force_load_balance"), false);
  request_.spec.dispatcher = Dispatcher::deepep;
  request_.spec.routing = Routing::balanced;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(setting("parallelism", "expert_parallel_comm_backend"), "deepep");
  EXPECT_EQ(setting("debug", "moe_force_load_balance"), true);
  request_.spec.dispatcher = Dispatcher::alltoall;
  request_.spec.parallel.tensor = 2, request_.spec.parallel.expert_tensor = 2;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(setting("parallelism", "expert_tensor_parallel_degree"), 2);
}

TEST_F(TitanExperts, ADenseModelHasNoKeysOfExperts) {
  request_.spec.model.experts.reset();
  const Json settings = list_titan_settings(request_);
  EXPECT_FALSE(settings.at("parallelism").contains("expert_parallel_degree"));
  EXPECT_FALSE(settings.at("debug").contains("moe_force_load_balance"));
}

TEST_F(TitanExperts, TheAdapterHasItsModels) {
  const LaunchPlan planned = plan();
  const auto file = std::ranges::find_if(
      planned.files, [](const GeneratedFile& each) { return each.path.ends_with("/adapter/titan_experts.py"); });
  ASSERT_NE(file, planned.files.end());
  EXPECT_NE(file->content.find("deepseek_v3"), std::string::npos);
}

TEST_F(TitanExperts, ForcedBalanceOverrulesABalancingLoss) {
  experts().balancing = LoadBalancing::aux_loss;
  experts().aux_loss_coefficient = 0.02;
  EXPECT_NE(refusal().find("models." + request_.spec.model.name + ".experts.aux_loss_coefficient to 0"),
            std::string::npos)
      << refusal();
  request_.spec.routing = Routing::balanced;
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(deviations()["aux_loss_coefficient"], "none: forced balance overrules the balancing loss");
  experts().balancing = LoadBalancing::none;
  EXPECT_FALSE(deviations().contains("aux_loss_coefficient"));
}

struct Refusal {
  const char* sentence;
  void (*change)(TrainSpec&);
};

TEST_F(TitanExperts, WhatItsRouterAndLayersLackIsRefused) {
  const Refusal refusals[] = {
      {"has no auxiliary loss", [](TrainSpec& s) { s.model.experts->balancing = LoadBalancing::aux_loss; }},
      {"has no auxiliary loss", [](TrainSpec& s) { s.model.experts->balancing = LoadBalancing::sequence_aux_loss; }},
      {"has no auxiliary loss",
       [](TrainSpec& s) {
         s.model.experts->balancing = LoadBalancing::bias;
         s.model.experts->aux_loss_coefficient = 1e-4;
       }},
      {"no router z-loss", [](TrainSpec& s) { s.model.experts->z_loss_coefficient = 1e-3; }},
      {"drops no tokens", [](TrainSpec& s) { s.model.experts->capacity_factor = 1.25; }},
      {"by their two best experts", [](TrainSpec& s) { s.model.experts->groups = 8; }},
      {"no gate of the shared experts", [](TrainSpec& s) { s.model.experts->shared_gate = true; }},
      {"only experts of the model's width", [](TrainSpec& s) { s.model.experts->latent_size = 256; }},
      {"further tokens (MTP)", [](TrainSpec& s) { s.model.prediction_layers = 1; }},
      {"hybrid with Mamba layers", [](TrainSpec& s) { s.model.mamba = MambaMixers{}; }},
      {"in its dense models only", [](TrainSpec& s) { s.model.tied_embeddings = true; }},
      {"no bias in its models with experts", [](TrainSpec& s) { s.model.qkv_bias = true; }},
      {"does not support fp8 with experts", [](TrainSpec& s) { s.precision = Precision::fp8; }},
      {"has attention sinks in its gpt_oss only", [](TrainSpec& s) { s.model.attention_sinks = true; }},
  };
  for (const Refusal& each : refusals) {
    request_ = base_request(Platform::nvd);
    request_.spec.model.experts = base_experts();
    each.change(request_.spec);
    EXPECT_NE(refusal().find(each.sentence), std::string::npos) << each.sentence << "\n" << refusal();
  }
}

TEST_F(TitanExperts, WhatItsLayoutsLackIsRefused) {
  const Refusal refusals[] = {
      {"all tensor-parallel ranks or over none, but ETP is 2 and TP 4",
       [](TrainSpec& s) { s.parallel.tensor = 4, s.parallel.expert = 2, s.parallel.expert_tensor = 2; }},
      {"if EP is 1, but ETP is 1",
       [](TrainSpec& s) { s.parallel.tensor = 2, s.parallel.expert = 1, s.parallel.expert_tensor = 1; }},
      {"EP 3 does not divide 8", [](TrainSpec& s) { s.parallel.expert = 3; }},
      {"only together with DP or CP",
       [](TrainSpec& s) { s.parallel = {.tensor = 4, .expert = 4}, s.precision = Precision::fp32; }},
      {"not by allgather", [](TrainSpec& s) { s.dispatcher = Dispatcher::allgather; }},
      {"not by hybridep", [](TrainSpec& s) { s.dispatcher = Dispatcher::hybridep; }},
      {"DeepEP in its deepseek_v3 only",
       [](TrainSpec& s) { s.dispatcher = Dispatcher::deepep, s.parallel.expert = 2; }},
      {"but EP is 1 and TP 1", [](TrainSpec& s) { s.dispatcher = Dispatcher::deepep; }},
  };
  for (const Refusal& each : refusals) {
    request_ = base_request(Platform::nvd);
    request_.spec.model.experts = base_experts();
    each.change(request_.spec);
    EXPECT_NE(refusal().find(each.sentence), std::string::npos) << each.sentence << "\n" << refusal();
  }
}

TEST_F(TitanExperts, GptOssIsTheOnlyOneWithSinks) {
  make_gpt_oss();
  EXPECT_EQ(refusal(), "");
  EXPECT_NE(deviations().at("mlp").find("gpt-oss"), std::string::npos);
  request_.spec.model.full_attention_layers = 2;
  EXPECT_NE(refusal().find("set full_attention_layers to 4"), std::string::npos) << refusal();
  request_.spec.model.full_attention_layers = 4;
  request_.spec.parallel.context = 2;
  EXPECT_NE(refusal().find("no context parallelism for its gpt_oss"), std::string::npos) << refusal();
  request_.spec.parallel.context = 1;
  request_.spec.model.linear_bias = false;
  EXPECT_NE(refusal().find("with bias on every linear layer"), std::string::npos) << refusal();
  request_.spec.model.linear_bias = true;
  experts().shared_ffn_hidden_size = 512;
  EXPECT_NE(refusal().find("no shared ones"), std::string::npos) << refusal();
  experts().shared_ffn_hidden_size = 0;
  request_.platform = Platform::cpu;
  EXPECT_NE(refusal().find("gpt_oss (attention sinks) on GPUs only"), std::string::npos) << refusal();
}

TEST_F(TitanExperts, OnProcessorsEveryRankHasAllExperts) {
  request_.platform = Platform::cpu;
  EXPECT_EQ(refusal(), "");
  request_.spec.parallel.expert = 2;
  EXPECT_NE(refusal().find("on GPUs only"), std::string::npos) << refusal();
}

TEST_F(TitanExperts, WhatItDoesOtherwiseIsSaid) {
  request_.spec.parallel = {.tensor = 2, .data = 2, .sequence_parallel = true, .zero_stage = 3};
  EXPECT_EQ(deviations(), (std::map<std::string, std::string>{{"expert_tensor_parallel_size", "2"}}));
  request_.spec.parallel.expert = 2;
  EXPECT_TRUE(deviations().empty());
  make_deepseek();
  EXPECT_TRUE(deviations().empty());
  RopeScaling yarn;
  yarn.type = RopeScalingKind::yarn, yarn.original_max_position_embeddings = 4096;
  request_.spec.model.rope_scaling = yarn;
  EXPECT_EQ(deviations().at("rope_scaling"), "none up to original_max_position_embeddings");
  request_.spec.sequence_length = 8192;
  EXPECT_NE(deviations().at("rope_scaling").find("whole scores"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::suite
