// Mixtures of experts and latent attention under NeMo: what Megatron-Bridge's configuration then states.
#include <gtest/gtest.h>

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

class BridgeExperts : public ::testing::Test {
 protected:
  void SetUp() override {
    request_.checkout = {};
    request_.checkout.primus = "/opt/Primus";
    request_.spec.model.experts = base_experts();
  }
  Experts& experts() { return *request_.spec.model.experts; }
  Json model() const { return list_bridge_settings(request_).at("model"); }
  std::string refusal() const {
    try {
      plan_launch(require_framework(Framework::nemo, request_.platform), request_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::string expect_values(const std::map<std::string, Json>& wanted) const {
    const Json found = model();
    for (const auto& [name, value] : wanted) EXPECT_EQ(found.at(name), value) << name;
    return print_json(found);
  }

  LaunchRequest request_ = base_request(Platform::amd);
};

TEST_F(BridgeExperts, AreSettingsOfItsModel) {
  experts() = {.count = 64,
               .per_token = 8,
               .ffn_hidden_size = 256,
               .shared_ffn_hidden_size = 512,
               .first_dense_layers = 3,
               .router_score = RouterScore::sigmoid,
               .weight_scale = 2.5,
               .groups = 8,
               .groups_per_token = 4,
               .balancing = LoadBalancing::bias,
               .aux_loss_coefficient = 1e-4};
  request_.spec.parallel.expert = 4;
  expect_values({{"num_moe_experts", 64},
                 {"ffn_hidden_size", 1536},
                 {"moe_ffn_hidden_size", 256},
                 {"moe_shared_expert_intermediate_size", 512},
                 {"moe_layer_freq", Json(std::vector<int64_t>{0, 0, 0, 1, 1, 1, 1, 1})},
                 {"moe_router_topk", 8},
                 {"moe_router_score_function", "sigmoid"},
                 {"moe_router_topk_scaling_factor", 2.5},
                 {"moe_router_num_groups", 8},
                 {"moe_router_group_topk", 4},
                 {"moe_router_enable_expert_bias", true},
                 {"moe_router_load_balancing_type", "seq_aux_loss"},
                 {"moe_aux_loss_coeff", 1e-4},
                 {"moe_grouped_gemm", true},
                 {"moe_token_dispatcher_type", "alltoall"},
                 {"moe_router_force_load_balancing", false},
                 {"expert_model_parallel_size", 4},
                 {"expert_tensor_parallel_size", 1}});
  EXPECT_EQ(refusal(), "");
}

TEST_F(BridgeExperts, ADenseModelHasNone) {
  request_.spec.model.experts.reset();
  const Json dense = model();
  EXPECT_TRUE(dense.at("num_moe_experts").is_null());
  for (const auto& [name, value] : dense.items()) EXPECT_FALSE(name.starts_with("moe_")) << name;
}

TEST_F(BridgeExperts, FusedExchangesAreItsFlexDispatcher) {
  request_.spec.dispatcher = Dispatcher::deepep;
  request_.spec.parallel.expert = 4;
  expect_values({{"moe_token_dispatcher_type", "flex"}, {"moe_flex_dispatcher_backend", "deepep"}});
  request_.spec.dispatcher = Dispatcher::hybridep;
  expect_values({{"moe_flex_dispatcher_backend", "hybridep"}});
  request_.spec.dispatcher = Dispatcher::allgather;
  EXPECT_FALSE(model().contains("moe_flex_dispatcher_backend"));
  expect_values({{"moe_token_dispatcher_type", "allgather"}});
}

TEST_F(BridgeExperts, LatentAttentionPredictionAndSinksAreThere) {
  ModelSpec& shape = request_.spec.model;
  shape.num_key_value_heads = 8;
  shape.latent_attention = LatentAttention{256, 128, 32, 48};
  shape.prediction_layers = 1;
  expect_values({{"multi_latent_attention", true},
                 {"q_lora_rank", 256},
                 {"kv_lora_rank", 128},
                 {"qk_head_dim", 64},
                 {"qk_pos_emb_head_dim", 32},
                 {"v_head_dim", 48},
                 {"qk_layernorm", true},
                 {"rope_type", "rope"},
                 {"apply_rope_fusion", false},
                 {"mtp_num_layers", 1}});
  shape.rope_scaling =
      RopeScaling{.type = RopeScalingKind::yarn, .factor = 40, .original_max_position_embeddings = 4096};
  expect_values({{"rope_type", "yarn"}, {"rotary_scaling_factor", 40.0}, {"seq_len_interpolation_factor", Json()}});
  shape = base_model();
  shape.attention_sinks = shape.linear_bias = true;
  shape.sliding_window = 128, shape.full_attention_layers = 4;
  shape.experts = base_experts();
  expect_values({{"softmax_type", "learnable"}, {"window_attn_skip_freq", 2}, {"bias_activation_fusion", false}});
}

TEST_F(BridgeExperts, WhatItCannotSetIsRefused) {
  request_.spec.model.prediction_layers = 2;
  EXPECT_EQ(refusal(), "");
  request_.spec.model.shared_prediction = true;
  EXPECT_NE(refusal().find("its own weights"), std::string::npos) << refusal();
  request_.spec.model.prediction_layers = 1;
  EXPECT_EQ(refusal(), "");
  experts().latent_size = 256;
  EXPECT_NE(refusal().find("where Primus starts it"), std::string::npos) << refusal();
  request_.platform = Platform::nvd;
  EXPECT_EQ(refusal(), "");
  request_.spec.parallel = {.tensor = 2, .data = 2};
  EXPECT_NE(refusal().find("only together with sequence parallelism"), std::string::npos) << refusal();
}

// The settings alone, without train_spec.json.
TEST_F(BridgeExperts, EveryChangeOfExpertsIsStated) {
  const std::string before = print_json(list_bridge_settings(request_));
  for (const Change& change : expert_changes()) {
    LaunchRequest changed = request_;
    change.apply(changed);
    EXPECT_NE(print_json(list_bridge_settings(changed)), before) << change.key;
  }
}

// Fields of the classes of Megatron-Bridge and Megatron Core, with the file and commit where they stand.
TEST_F(BridgeExperts, EverySettingIsOneThatMegatronBridgeKnows) {
  std::istringstream lines(read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/golden/launch/bridge_expert_keys.tsv"));
  std::set<std::string> known, stated;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) known.insert(line.substr(0, line.find('\t')));
  LaunchRequest dense = request_;
  dense.spec.model.experts.reset();
  const Json settings_of_dense = list_bridge_settings(dense).at("model");
  request_.spec.dispatcher = Dispatcher::deepep;
  for (const Change& change : expert_changes()) {
    LaunchRequest changed = request_;
    if (std::string_view(change.key) == "sinks")
      changed.spec.model.sliding_window = 128, changed.spec.model.full_attention_layers = 4;
    change.apply(changed);
    const Json of_model = list_bridge_settings(changed).at("model");
    for (const auto& [name, value] : of_model.items())
      if (!settings_of_dense.contains(name)) stated.insert(name);
  }
  EXPECT_EQ(stated, known);
}

}  // namespace
}  // namespace tprimat::suite
