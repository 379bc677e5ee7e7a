// Mixtures of experts as the frameworks' dumps describe them, and what a result then has of their routing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/files.h"
#include "extract/common/expert_settings.h"
#include "extract/common/layer_pattern.h"
#include "extract/logged_model.h"
#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"

namespace tprimat::logs {
namespace {

using Settings = std::map<std::string, std::string>;

RunResult result_of_fixture(const std::string& name, const KnownFacts& known = {}) {
  return make_result(read_log(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/" + name, {}), name,
                     known);
}

bool warns(const RunResult& result, std::string_view words) {
  return std::ranges::any_of(result.warnings, [&](const std::string& each) { return contains(each, words); });
}

// Arguments of Megatron-LM for a small model like Qwen3's.
Settings megatron_settings() {
  return {{"num_layers", "8"},
          {"hidden_size", "1024"},
          {"num_attention_heads", "8"},
          {"vocab_size", "32000"},
          {"ffn_hidden_size", "3072"},
          {"swiglu", "True"},
          {"group_query_attention", "True"},
          {"num_query_groups", "4"},
          {"kv_channels", "128"},
          {"normalization", "RMSNorm"},
          {"position_embedding_type", "rope"},
          {"untie_embeddings_and_output_weights", "True"},
          {"num_experts", "16"},
          {"moe_router_topk", "4"},
          {"moe_ffn_hidden_size", "512"},
          {"moe_layer_freq", "1"},
          {"multi_latent_attention", "False"},
          {"kv_lora_rank", "32"}};
}

std::optional<ModelSpec> shape_of(Settings settings, const Settings& changes = {}) {
  for (const auto& [key, value] : changes) settings[key] = value;
  return find_model_shape(settings, {});
}

TEST(LayerPattern, ReadsListsAndPythonsProducts) {
  const auto ones = [](std::string_view text) {
    const auto pattern = parse_layer_pattern(text);
    return pattern ? fmt::format("{} of {}", std::count(pattern->begin(), pattern->end(), true), pattern->size()) : "";
  };
  EXPECT_EQ(ones("[0, 1, 1]"), "2 of 3");
  EXPECT_EQ(ones("([0]*3+[1]*58)"), "58 of 61");
  EXPECT_EQ(ones("'([0]*1+[1]*26)'"), "26 of 27");
  EXPECT_EQ(ones("([0,1]*2)*3 + [1]"), "7 of 13");
  for (const char* wrong : {"", "1", "[]", "[0, 1", "[0, 2]", "[0]*", "[0]*99999", "[1]*4000+[1]*4000", "([1]", "[1])",
                            "((((((((((([1])))))))))))", "[0,,1]", "[0 1]", "[-1]"})
    EXPECT_EQ(ones(wrong), "") << wrong;
}

TEST(SparseModel, OfMegatronsArguments) {
  const auto model = shape_of(megatron_settings(), {{"moe_layer_freq", "([0]*2+[1]*6)"},
                                                    {"moe_shared_expert_intermediate_size", "1024"},
                                                    {"moe_shared_expert_gate", "True"},
                                                    {"moe_router_score_function", "sigmoid"},
                                                    {"moe_router_num_groups", "4"},
                                                    {"moe_router_group_topk", "2"},
                                                    {"moe_router_topk_scaling_factor", "2.5"},
                                                    {"moe_router_enable_expert_bias", "True"},
                                                    {"moe_router_load_balancing_type", "seq_aux_loss"},
                                                    {"moe_aux_loss_coeff", "0.0001"},
                                                    {"moe_z_loss_coeff", "0.001"},
                                                    {"moe_expert_capacity_factor", "1.25"},
                                                    {"rotary_base", "500000"},
                                                    {"norm_epsilon", "1e-06"},
                                                    {"mtp_num_layers", "1"}});
  ASSERT_TRUE(model && model->experts);
  const Experts& experts = *model->experts;
  EXPECT_EQ(experts.count, 16);
  EXPECT_EQ(experts.per_token, 4);
  EXPECT_EQ(experts.ffn_hidden_size, 512);
  EXPECT_EQ(experts.shared_ffn_hidden_size, 1024);
  EXPECT_TRUE(experts.shared_gate);
  EXPECT_EQ(experts.first_dense_layers, 2);
  EXPECT_EQ(model->expert_layers(), 6);
  EXPECT_EQ(model->ffn_hidden_size, 3072);
  EXPECT_EQ(experts.router_score, RouterScore::sigmoid);
  EXPECT_EQ(experts.groups, 4);
  EXPECT_EQ(experts.groups_per_token, 2);
  EXPECT_EQ(experts.weight_scale, 2.5);
  EXPECT_EQ(experts.balancing, LoadBalancing::bias);
  EXPECT_EQ(experts.aux_loss_coefficient, 1e-4);
  EXPECT_EQ(experts.z_loss_coefficient, 1e-3);
  EXPECT_EQ(experts.capacity_factor, 1.25);
  EXPECT_EQ(model->prediction_layers, 1);
  EXPECT_EQ(model->rope_theta, 500000);
  EXPECT_EQ(model->norm_eps, 1e-6);
  EXPECT_EQ(model->num_key_value_heads, 4);
  EXPECT_FALSE(model->latent_attention);  // Megatron-LM prints its rank for every model
}

TEST(SparseModel, RanksOfLatentAttention) {
  const auto model = shape_of(megatron_settings(), {{"multi_latent_attention", "True"},
                                                    {"group_query_attention", "False"},
                                                    {"q_lora_rank", "1536"},
                                                    {"kv_lora_rank", "512"},
                                                    {"qk_head_dim", "96"},
                                                    {"qk_pos_emb_head_dim", "32"},
                                                    {"v_head_dim", "96"}});
  ASSERT_TRUE(model && model->latent_attention);
  EXPECT_EQ(*model->latent_attention, (LatentAttention{1536, 512, 32, 96}));
  EXPECT_EQ(model->head_dim, 96);
  EXPECT_EQ(model->num_key_value_heads, 8);
}

TEST(SparseModel, LayersWithExperts) {
  const auto layers = [](const char* frequency) -> std::string {
    const auto model = shape_of(megatron_settings(), {{"moe_layer_freq", frequency}});
    return !model ? "" : fmt::format("{} after {}", model->expert_layers(), model->experts->first_dense_layers);
  };
  EXPECT_EQ(layers("1"), "8 after 0");
  EXPECT_EQ(layers("None"), "8 after 0");
  EXPECT_EQ(layers("2"), "4 after 0");
  EXPECT_EQ(layers("[0, 1, 0, 1, 0, 1, 0, 1]"), "4 after 0");
  EXPECT_EQ(layers("[0, 0, 0, 0, 1, 0, 0, 1]"), "2 after 2");
  EXPECT_EQ(layers("[0, 1, 1, 0, 1, 1, 1, 1]"), "");  // no plain pattern
  EXPECT_EQ(layers("[1, 1, 1]"), "");                 // of another depth
  EXPECT_EQ(layers("[0, 0, 0, 0, 0, 0, 0, 0]"), "");  // of no experts
  EXPECT_EQ(layers("[0, 1, 1, 1, 1, 1, 1"), "");      // cut
}

TEST(SparseModel, WhatIsNotStatedIsNotGuessed) {
  for (const char* name : {"moe_router_topk", "moe_layer_freq", "vocab_size", "num_layers"}) {
    Settings settings = megatron_settings();
    settings.erase(name);
    EXPECT_FALSE(find_model_shape(settings, {})) << name;
  }
  for (const auto& [name, value] : Settings{{"experimental_attention_variant", "dsa"},
                                            {"linear_attention_freq", "4"},
                                            {"compress_ratios", "[0,4,128,0]"},
                                            {"hybrid_override_pattern", "M-M*-"},
                                            {"moe_router_topk", "99"}})
    EXPECT_FALSE(shape_of(megatron_settings(), {{name, value}})) << name;
  EXPECT_TRUE(shape_of(megatron_settings(), {{"hybrid_override_pattern", "None"}}));
}

TEST(SparseModel, HybridsOfMambaMixers) {
  const Settings mixers = {{"hybrid_override_pattern", "MEM*ME-E"},
                           {"mamba_state_dim", "128"},
                           {"mamba_num_groups", "8"},
                           {"mamba_head_dim", "64"},
                           {"mamba_num_heads", "None"},
                           {"is_hybrid_model", "True"}};
  const auto model = shape_of(megatron_settings(), mixers);
  ASSERT_TRUE(model && model->mamba && model->experts);
  EXPECT_EQ(model->mamba->layers, 3);
  EXPECT_EQ(model->mamba->heads, 32);
  EXPECT_EQ(model->mamba->inner_width, 2048);
  EXPECT_EQ(model->attention_layers(), 1);
  EXPECT_EQ(model->expert_layers(), 3);
  EXPECT_EQ(model->dense_layers(), 1);
  for (const char* other : {"MEM*ME-G", "MEM*ME-", "MEM*ME-E/ME", "********", "M-M*M---"}) {
    Settings changed = mixers;
    changed["hybrid_override_pattern"] = other;
    EXPECT_FALSE(shape_of(megatron_settings(), changed)) << other;
  }
  EXPECT_FALSE(shape_of(megatron_settings(), {{"is_hybrid_model", "True"}}));
}

TEST(SparseModel, SlidingWindows) {
  const auto model =
      shape_of(megatron_settings(),
               {{"window_size", "(127, 0)"}, {"window_attn_skip_freq", "2"}, {"softmax_type", "learnable"}});
  ASSERT_TRUE(model);
  EXPECT_EQ(model->sliding_window, 128);
  EXPECT_EQ(model->full_attention_layers, 4);
  EXPECT_EQ(model->attention_sinks, true);
  EXPECT_FALSE(shape_of(megatron_settings(), {{"window_size", "None"}})->sliding_window);
  EXPECT_FALSE(shape_of(megatron_settings(), {{"window_size", "(-1, 0)"}})->sliding_window);
}

TEST(SparseModel, OfAHuggingFaceConfig) {
  const Settings deepseek = {{"model_type", "deepseek_v3"},
                             {"num_hidden_layers", "6"},
                             {"hidden_size", "512"},
                             {"intermediate_size", "2048"},
                             {"moe_intermediate_size", "256"},
                             {"num_attention_heads", "8"},
                             {"num_key_value_heads", "8"},
                             {"n_routed_experts", "16"},
                             {"n_shared_experts", "2"},
                             {"num_experts_per_tok", "4"},
                             {"first_k_dense_replace", "1"},
                             {"moe_layer_freq", "1"},
                             {"n_group", "4"},
                             {"topk_group", "2"},
                             {"norm_topk_prob", "true"},
                             {"routed_scaling_factor", "2.5"},
                             {"scoring_func", "sigmoid"},
                             {"topk_method", "noaux_tc"},
                             {"kv_lora_rank", "128"},
                             {"q_lora_rank", "null"},
                             {"qk_nope_head_dim", "64"},
                             {"qk_head_dim", "96"},
                             {"qk_rope_head_dim", "32"},
                             {"v_head_dim", "64"},
                             {"hidden_act", "silu"},
                             {"vocab_size", "32000"},
                             {"rms_norm_eps", "1e-06"},
                             {"num_nextn_predict_layers", "1"},
                             {"tie_word_embeddings", "false"}};
  const auto model = shape_of(deepseek);
  ASSERT_TRUE(model && model->experts && model->latent_attention);
  EXPECT_EQ(model->expert_layers(), 5);
  EXPECT_EQ(model->experts->shared_ffn_hidden_size, 512);
  EXPECT_EQ(model->experts->balancing, LoadBalancing::bias);
  EXPECT_EQ(*model->latent_attention, (LatentAttention{0, 128, 32, 64}));
  EXPECT_EQ(model->head_dim, 64);
  EXPECT_FALSE(model->prediction_layers);  // transformers does not build them
  EXPECT_FALSE(shape_of(deepseek, {{"index_topk", "2048"}}));
  EXPECT_FALSE(shape_of(deepseek, {{"mlp_only_layers", "[3, 5]"}}));
  EXPECT_FALSE(shape_of(deepseek, {{"model_type", "gemma9"}}));  // its layers may be others
}

TEST(SparseModel, OfGptOssWindows) {
  const Settings settings = {{"model_type", "gpt_oss"},
                             {"num_hidden_layers", "4"},
                             {"hidden_size", "256"},
                             {"intermediate_size", "256"},
                             {"num_attention_heads", "8"},
                             {"num_key_value_heads", "2"},
                             {"head_dim", "32"},
                             {"num_local_experts", "8"},
                             {"num_experts_per_tok", "2"},
                             {"hidden_act", "silu"},
                             {"vocab_size", "32000"},
                             {"rms_norm_eps", "1e-05"},
                             {"tie_word_embeddings", "false"},
                             {"sliding_window", "128"},
                             {"layer_types",
                              "[\"sliding_attention\", \"full_attention\", \"sliding_attention\", "
                              "\"full_attention\"]"}};
  const auto model = shape_of(settings);
  ASSERT_TRUE(model && model->experts);
  EXPECT_EQ(model->experts->ffn_hidden_size, 256);
  EXPECT_EQ(model->sliding_window, 128);
  EXPECT_EQ(model->full_attention_layers, 2);
  EXPECT_EQ(model->attention_sinks, true);
  EXPECT_FALSE(shape_of(settings, {{"layer_types", "[\"linear_attention\", \"full_attention\"]"}}));
  EXPECT_FALSE(shape_of(settings, {{"layer_types", "[\"sliding_attention\", \"full_atten"}}));  // cut
}

TEST(SparseModel, RoutingAndDispatcherAreAbsentWhereNoSettingTells) {
  EXPECT_EQ(stated_routing({}), std::nullopt);
  EXPECT_EQ(stated_routing({{"moe_router_force_load_balancing", "True"}}), Routing::balanced);
  EXPECT_EQ(stated_routing({{"model.moe_router_force_load_balancing", "false"}}), Routing::learned);
  EXPECT_EQ(stated_routing({{"training.debug_moe_force_load_balance", "True"}}), Routing::balanced);
  EXPECT_EQ(stated_routing({{"debug.moe_force_load_balance", "true"}}), Routing::balanced);
  EXPECT_EQ(stated_routing({{"moe_router_force_load_balancing", "False"}, {"moe_router_force_biased", "0.5"}}),
            std::nullopt);
  const Settings two_names = {{"debug.moe_force_load_balance", "false"},
                              {"model_args.moe_args._debug_force_load_balance", "True"}};
  EXPECT_EQ(stated_routing(two_names), Routing::balanced);
  EXPECT_EQ(stated_dispatcher({}), std::nullopt);
  EXPECT_EQ(stated_dispatcher({{"moe_token_dispatcher_type", "allgather"}}), Dispatcher::allgather);
  EXPECT_EQ(stated_dispatcher({{"moe_token_dispatcher_type", "flex"}}), std::nullopt);
  EXPECT_EQ(stated_dispatcher({{"moe_token_dispatcher_type", "flex"}, {"moe_enable_deepep", "True"}}),
            Dispatcher::deepep);
  EXPECT_EQ(stated_dispatcher({{"moe_token_dispatcher_type", "flex"}, {"moe_flex_dispatcher_backend", "hybridep"}}),
            Dispatcher::hybridep);
  EXPECT_EQ(stated_dispatcher({{"parallelism.expert_parallel_comm_backend", "standard"}}), Dispatcher::alltoall);
}

TEST(SparseResult, OfMegatronsRecords) {
  KnownFacts known;
  known.device = "H100";
  const RunResult result = result_of_fixture("megatron/experts.log", known);
  ASSERT_TRUE(result.model_info.shape && result.experts);
  EXPECT_EQ(result.model_info.shape->vocab_size, 50257);
  EXPECT_EQ(result.parallelism_config.expert_model_parallel_size, 4);
  EXPECT_EQ(result.parallelism_config.expert_tensor_parallel_size, 1);
  EXPECT_EQ(result.experts->routing, Routing::balanced);
  EXPECT_EQ(result.experts->dispatcher, Dispatcher::deepep);
  // Three layers with experts and one that predicts: 4 x 0.001 x the printed mean.
  ASSERT_TRUE(result.experts->aux_loss_values && result.experts->z_loss_values);
  EXPECT_NEAR(result.experts->aux_loss_values->at(1), 4 * 0.001 * 1.0004, 1e-12);
  EXPECT_NEAR(result.experts->z_loss_values->at(1), 4 * 0.0001 * 19, 1e-12);
  EXPECT_NEAR(result.experts->aux_loss.value_or(0), 4 * 0.001 * (1.0004 + 1.0003) / 2, 1e-12);
  EXPECT_NEAR(result.loss_values.at(0), 11.9, 1e-9);
  EXPECT_TRUE(result.derived.mfu);
  EXPECT_EQ(result.derived.flops_per_token.size(), 3u);
}

TEST(SparseResult, LossesWithoutTheirCoefficientAreNotKnown) {
  std::string text = read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/megatron/experts.log");
  for (const char* name : {"  moe_aux_loss_coeff", "  moe_z_loss_coeff"}) {
    const size_t line = text.find(name);
    ASSERT_NE(line, std::string::npos);
    text.erase(line, text.find('\n', line) + 1 - line);
  }
  const RunResult result = make_result(read_log_text(text, {}), "a.log", {});
  ASSERT_TRUE(result.experts);
  EXPECT_FALSE(result.experts->aux_loss_values);
  EXPECT_FALSE(result.experts->z_loss_values);
}

TEST(SparseResult, OfOtherDialects) {
  const RunResult deepspeed = result_of_fixture("megatron_deepspeed/moe_loss.log");
  ASSERT_TRUE(deepspeed.experts && deepspeed.experts->aux_loss_values);
  EXPECT_NEAR(deepspeed.experts->aux_loss_values->at(0), 0.07, 1e-12);  // as it was added
  EXPECT_EQ(deepspeed.parallelism_config.expert_model_parallel_size, 4);
  const RunResult titan = result_of_fixture("torchtitan/experts.log");
  EXPECT_EQ(titan.parallelism_config.expert_model_parallel_size, 4);
  EXPECT_EQ(titan.parallelism_config.expert_tensor_parallel_size, 1);
  ASSERT_TRUE(titan.model_info.shape && titan.model_info.shape->experts);
  EXPECT_EQ(titan.model_info.shape->experts->shared_ffn_hidden_size, 512);
  EXPECT_EQ(titan.model_info.shape->latent_attention->key_value_rank, 512);
  EXPECT_EQ(titan.training_config.sequence_length, 2048);
  const RunResult mixtral = result_of_fixture("hf_trainer/mixtral.log");
  ASSERT_TRUE(mixtral.model_info.shape && mixtral.model_info.shape->experts && mixtral.experts);
  EXPECT_EQ(mixtral.model_info.shape->experts->ffn_hidden_size, 512);
  EXPECT_NEAR(mixtral.experts->aux_loss_values->at(0), 0.02 * 2.05, 1e-12);
  EXPECT_FALSE(mixtral.experts->routing);
  const RunResult bridge = result_of_fixture("megatron_bridge/experts.log");
  ASSERT_TRUE(bridge.model_info.shape && bridge.model_info.shape->experts && bridge.experts);
  EXPECT_EQ(bridge.model_info.shape->experts->count, 128);
  EXPECT_EQ(bridge.model_info.shape->expert_layers(), 4);
  EXPECT_EQ(bridge.experts->routing, Routing::learned);
  EXPECT_NEAR(bridge.experts->aux_loss_values->at(1), 4 * 0.001 * 1.02, 1e-12);
}

TEST(SparseResult, LoadAndDroppedTokensOfStepRecords) {
  const RunResult result = result_of_fixture("steps/experts.log");
  ASSERT_TRUE(result.experts && result.experts->load_values);
  EXPECT_EQ(result.experts->load_values->at(0), 1.75);
  EXPECT_TRUE(std::isnan(result.experts->load_values->at(2)));
  EXPECT_EQ(result.experts->load, 1.5);  // of the steady steps those that tell
  EXPECT_NEAR(result.experts->dropped_share.value_or(-1), (0.125 + 0.0625) / 2, 1e-12);
  EXPECT_EQ(result.experts->z_loss, 0.003);
}

TEST(SparseResult, SaysWhyThereIsNoMfu) {
  const RunResult unnamed = result_of_fixture("megatron/experts.log");
  EXPECT_FALSE(unnamed.derived.mfu);
  EXPECT_TRUE(warns(unnamed, "no MFU of this mixture of experts: the log names no GPU: add --device"));
  std::string text = read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/unit/extract/fixtures/megatron/experts.log");
  const size_t line = text.find("  hidden_size");
  text.erase(line, text.find('\n', line) + 1 - line);
  const RunResult shapeless = make_result(read_log_text(text, {}), "a.log", {});
  EXPECT_FALSE(shapeless.model_info.shape);
  EXPECT_TRUE(warns(shapeless, "mixture of experts (32 experts), but it does not state hidden_size"));
}

TEST(SparseResult, DenseDumpsGainNoExperts) {
  const RunResult result = result_of_fixture("megatron/ranks.log");
  EXPECT_FALSE(result.experts);
  EXPECT_FALSE(result.parallelism_config.expert_model_parallel_size);
}

}  // namespace
}  // namespace tprimat::logs
