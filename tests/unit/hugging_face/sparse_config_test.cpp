#include "hugging_face/sparse_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "unit/model_files/expect_error.h"

namespace tprimat {
namespace {

ModelSpec tiny_mixtral() {
  ModelSpec model;
  model.name = model.full_name = "mixtral";
  model.num_layers = 3;
  model.hidden_size = 32;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 8;
  model.vocab_size = 64;
  model.max_position_embeddings = 128;
  model.experts = Experts{.count = 4, .per_token = 2, .ffn_hidden_size = 48};
  model.ffn_hidden_size = 48;
  return model;
}

ModelSpec tiny_qwen3_moe() {
  ModelSpec model = tiny_mixtral();
  model.name = model.full_name = "qwen3_moe";
  model.qk_norm = true;
  model.ffn_hidden_size = 96;
  return model;
}

ModelSpec tiny_qwen2_moe() {
  ModelSpec model = tiny_mixtral();
  model.name = model.full_name = "qwen2_moe";
  model.qkv_bias = true;
  model.ffn_hidden_size = 96;
  model.experts->shared_ffn_hidden_size = 80;
  model.experts->shared_gate = true;
  model.experts->normalize_weights = false;
  return model;
}

ModelSpec tiny_deepseek_v3() {
  ModelSpec model = tiny_mixtral();
  model.name = model.full_name = "deepseek_v3";
  model.num_key_value_heads = 4;
  model.ffn_hidden_size = 96;
  model.norm_eps = 1e-6;
  model.latent_attention =
      LatentAttention{.query_rank = 16, .key_value_rank = 12, .rope_head_dim = 4, .value_head_dim = 6};
  model.experts = Experts{.count = 8,
                          .per_token = 2,
                          .ffn_hidden_size = 24,
                          .shared_ffn_hidden_size = 48,
                          .first_dense_layers = 1,
                          .router_score = RouterScore::sigmoid,
                          .weight_scale = 2.5,
                          .groups = 4,
                          .groups_per_token = 2,
                          .balancing = LoadBalancing::bias};
  return model;
}

ModelSpec tiny_deepseek_v2() {
  ModelSpec model = tiny_deepseek_v3();
  model.name = model.full_name = "deepseek_v2";
  model.latent_attention->query_rank = 0;
  model.experts->router_score = RouterScore::softmax;
  model.experts->normalize_weights = false;
  model.experts->balancing = LoadBalancing::sequence_aux_loss;
  model.experts->aux_loss_coefficient = 0.001;
  return model;
}

using Change = std::function<void(ModelSpec&)>;

void expect_back(
    ModelSpec model, const Change& change = [](ModelSpec&) {}) {
  change(model);
  const Json config = make_hugging_face_config(model, NumberFormat::bf16);
  const HuggingFaceModel back = parse_hugging_face_config(config, "config.json");
  EXPECT_EQ(back.spec, model) << print_json(config);
  EXPECT_EQ(config["model_type"], model.name);
  EXPECT_TRUE(back.notes.empty());
}

TEST(SparseConfig, EveryFamilyComesBack) {
  for (const ModelSpec& model :
       {tiny_mixtral(), tiny_qwen2_moe(), tiny_qwen3_moe(), tiny_deepseek_v2(), tiny_deepseek_v3()})
    expect_back(model);
}

TEST(SparseConfig, SwitchesWithinAFamilyComeBack) {
  expect_back(tiny_mixtral(), [](ModelSpec& m) { m.sliding_window = 16; });
  expect_back(tiny_qwen3_moe(), [](ModelSpec& m) { m.sliding_window = 16; });
  expect_back(tiny_qwen2_moe(), [](ModelSpec& m) { m.sliding_window = 16; });
  expect_back(tiny_qwen3_moe(), [](ModelSpec& m) { m.experts->normalize_weights = false; });
  expect_back(tiny_deepseek_v3(), [](ModelSpec& m) { m.prediction_layers = 1; });
  expect_back(tiny_deepseek_v3(), [](ModelSpec& m) { m.latent_attention->query_rank = 0; });
  expect_back(tiny_deepseek_v3(), [](ModelSpec& m) { m.rope_scaling = RopeScaling{.type = RopeScalingKind::yarn}; });
  expect_back(tiny_deepseek_v2(), [](ModelSpec& m) { m.experts->groups = m.experts->groups_per_token = 1; });
}

TEST(SparseConfig, WhatBalancesTheLoadComesBack) {
  for (const LoadBalancing kind : {LoadBalancing::aux_loss, LoadBalancing::sequence_aux_loss})
    for (const ModelSpec& model : {tiny_mixtral(), tiny_qwen3_moe(), tiny_deepseek_v2(), tiny_deepseek_v3()})
      expect_back(model, [kind](ModelSpec& m) {
        m.experts->balancing = kind;
        m.experts->aux_loss_coefficient = 0.01;
        m.experts->z_loss_coefficient = 0.001;
      });
  expect_back(tiny_deepseek_v3(), [](ModelSpec& m) { m.experts->balancing = LoadBalancing::none; });
  expect_back(tiny_deepseek_v3(), [](ModelSpec& m) { m.experts->aux_loss_coefficient = 1e-4; });  // beside the bias
}

TEST(SparseConfig, DenseLayersComeBack) {
  for (int64_t first = 0; first < 5; ++first)
    for (int64_t interval = 1; interval < 4; ++interval) {
      if (first + 2 * interval > 9) continue;  // with two layers of experts the interval shows
      expect_back(tiny_qwen3_moe(), [&](ModelSpec& m) {
        m.num_layers = 9;
        m.experts->first_dense_layers = first;
        m.experts->layer_interval = interval;
      });
    }
}

TEST(SparseConfig, RefusesShapesOfNoFamily) {
  const auto refusal = [](ModelSpec model, const Change& change) {
    change(model);
    return test::error_of([&] { find_hugging_face_family(model); });
  };
  const ModelSpec mixtral = tiny_mixtral(), qwen = tiny_qwen3_moe(), v2 = tiny_deepseek_v2(), v3 = tiny_deepseek_v3();
  const std::tuple<ModelSpec, Change, const char*> cases[] = {
      {mixtral, [](ModelSpec& m) { m.experts->first_dense_layers = 1; }, "experts in every layer"},
      {mixtral, [](ModelSpec& m) { m.experts->normalize_weights = false; }, "normalises weights"},
      {mixtral, [](ModelSpec& m) { m.experts->shared_ffn_hidden_size = 8; }, "shared expert with a gate"},
      {mixtral, [](ModelSpec& m) { m.experts->router_score = RouterScore::sigmoid; }, "sigmoid without"},
      {mixtral, [](ModelSpec& m) { m.experts->capacity_factor = 1.25; }, "capacity_factor"},
      {mixtral, [](ModelSpec& m) { m.experts->latent_size = 8; }, "latent_size"},
      {mixtral, [](ModelSpec& m) { m.attention_sinks = true; }, "clamped SwiGLU"},
      {mixtral, [](ModelSpec& m) { m.mlp = MlpKind::gelu; }, "swiglu"},
      {mixtral, [](ModelSpec& m) { m.linear_bias = true; }, "linear_bias"},
      {qwen, [](ModelSpec& m) { m.experts->groups = 2; }, "groups without"},
      {qwen, [](ModelSpec& m) { m.experts->weight_scale = 2.0; }, "weight_scale without"},
      {qwen, [](ModelSpec& m) { m.experts->balancing = LoadBalancing::bias; }, "bias without a sigmoid"},
      {qwen, [](ModelSpec& m) { m.prediction_layers = 1; }, "prediction_layers"},
      {qwen, [](ModelSpec& m) { m.sliding_window = 8, m.full_attention_layers = 1; }, "full_attention_layers"},
      {v2, [](ModelSpec& m) { m.experts->normalize_weights = true; }, "normalize_weights: false"},
      {v2, [](ModelSpec& m) { m.experts->balancing = LoadBalancing::bias; }, "no balancing by bias"},
      {v3, [](ModelSpec& m) { m.experts->groups = 8; }, "two best experts"},
      {v3, [](ModelSpec& m) { m.experts->shared_ffn_hidden_size = 0; }, "multiple of"},
      {v3, [](ModelSpec& m) { m.experts->shared_ffn_hidden_size = 30; }, "multiple of"},
      {v3, [](ModelSpec& m) { m.num_key_value_heads = 2; }, "as many key/value heads"},
      {v3, [](ModelSpec& m) { m.experts.reset(); }, "latent_attention without experts"},
  };
  for (const auto& [model, change, words] : cases)
    EXPECT_NE(refusal(model, change).find(words), std::string::npos) << words << ": " << refusal(model, change);
}

// The sizes of public models, as their config.json states them; keys that no reader needs are left out.
TEST(SparseConfig, ReadsMixtral8x7B) {
  const HuggingFaceModel read = parse_hugging_face_config(
      parse_json(R"({"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
  "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_local_experts": 8, "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
  "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 32000})",
                 ""),
      "config.json");
  EXPECT_EQ(count_parameters(read.spec).total(), 46702792704);
  EXPECT_EQ(read.spec.experts, (Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 14336}));
  EXPECT_TRUE(read.notes.empty());
}

TEST(SparseConfig, ReadsQwen3Of30B) {
  const ModelSpec model =
      parse_hugging_face_config(
          parse_json(
              R"({"attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
  "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
  "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
  "use_sliding_window": false, "vocab_size": 151936})",
              ""),
          "config.json")
          .spec;
  EXPECT_EQ(count_parameters(model).total(), 30532122624);
  EXPECT_EQ(model.experts, (Experts{.count = 128, .per_token = 8, .ffn_hidden_size = 768}));
  EXPECT_FALSE(model.sliding_window);
}

TEST(SparseConfig, ReadsDeepSeekV3) {
  const HuggingFaceModel read = parse_hugging_face_config(
      parse_json(
          R"({"attention_bias": false, "aux_loss_alpha": 0.001, "first_k_dense_replace": 3, "hidden_act": "silu",
  "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling":
  {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
  "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 4,
  "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280,
  "quantization_config": {"fmt": "e4m3", "quant_method": "fp8"}})",
          ""),
      "config.json");
  ModelSpec main = read.spec;
  main.prediction_layers.reset();
  EXPECT_EQ(count_parameters(main).total(), 671026404352);  // of transformers' DeepseekV3ForCausalLM
  const Experts& experts = *read.spec.experts;
  EXPECT_EQ(read.spec.latent_attention, (LatentAttention{1536, 512, 64, 128}));
  EXPECT_EQ(read.spec.head_dim, 128);
  EXPECT_EQ(read.spec.prediction_layers, 1);
  EXPECT_EQ(experts.balancing, LoadBalancing::bias);
  EXPECT_EQ(experts.router_score, RouterScore::sigmoid);
  EXPECT_EQ(experts.shared_ffn_hidden_size, 2048);
  EXPECT_EQ(experts.groups, 8);
  EXPECT_EQ(experts.groups_per_token, 4);
  EXPECT_EQ(read.spec.rope_scaling->factor, 40);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_NE(read.notes[0].find("quantization_config"), std::string::npos);
}

TEST(SparseConfig, ReadsTheShapeOfGptOssAndSaysWhatItLacks) {
  const HuggingFaceModel read = parse_hugging_face_config(
      parse_json(R"({"attention_bias": true, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
  "intermediate_size": 2880, "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
  "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
  "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0,
  "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false},
  "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128, "swiglu_limit": 7.0,
  "tie_word_embeddings": false, "vocab_size": 201088})",
                 ""),
      "config.json");
  EXPECT_EQ(read.spec.experts, (Experts{.count = 32, .per_token = 4, .ffn_hidden_size = 2880}));
  EXPECT_EQ(read.spec.sliding_window, 128);
  EXPECT_EQ(read.spec.full_attention_layers, 12);
  EXPECT_EQ(read.spec.attention_sinks, true);
  ASSERT_EQ(read.notes.size(), 1u);
  EXPECT_NE(read.notes[0].find("clamps"), std::string::npos);
  EXPECT_ERROR_WITH("clamped SwiGLU", make_hugging_face_config(read.spec, NumberFormat::f32));
}

TEST(SparseConfig, RefusesWhatItDoesNotCompute) {
  const std::tuple<ModelSpec, const char*, const char*> cases[] = {
      {tiny_mixtral(), R"({"router_jitter_noise": 0.1})", "router_jitter_noise is 0.1"},
      {tiny_mixtral(), R"({"num_local_experts": 0})", "num_local_experts must be a size"},
      {tiny_mixtral(), R"({"num_local_experts": 1})", "per_token"},
      {tiny_qwen3_moe(), R"({"mlp_only_layers": [1]})", "mlp_only_layers is [1]"},
      {tiny_qwen3_moe(), R"({"mlp_only_layers": [0, 1, 2]})", "mlp_only_layers"},
      {tiny_qwen3_moe(), R"({"mlp_only_layers": 3})", "a list of layers"},
      {tiny_qwen3_moe(), R"({"decoder_sparse_step": 7})", "mlp_only_layers"},
      {tiny_qwen3_moe(), R"({"num_hidden_layers": 1000000000})", "at most 10000"},
      {tiny_qwen2_moe(), R"({"qkv_bias": false})", "qkv_bias is false"},
      {tiny_qwen2_moe(), R"({"use_sliding_window": true, "layer_types": null})", "state layer_types"},
      {tiny_deepseek_v2(), R"({"norm_topk_prob": true})", "norm_topk_prob is true"},
      {tiny_deepseek_v2(), R"({"topk_method": "noaux_tc"})", "topk_method"},
      {tiny_deepseek_v3(), R"({"topk_method": "greedy"})", "topk_method"},
      {tiny_deepseek_v3(), R"({"scoring_func": "softmax"})", "scoring_func"},
      {tiny_deepseek_v3(), R"({"moe_layer_freq": 2})", "moe_layer_freq"},
      {tiny_deepseek_v3(), R"({"n_shared_experts": 1000000000000, "moe_intermediate_size": 1000000000000})", "at most"},
      {tiny_deepseek_v3(), R"({"rope_interleave": false})", "rope_interleave"},
      {tiny_deepseek_v3(), R"({"num_key_value_heads": 2})", "num_key_value_heads must be"},
      {tiny_deepseek_v3(), R"({"rope_scaling": {"type": "yarn", "factor": 40, "mscale_all_dim": 0.707, "mscale": 0.707},
                               "rope_parameters": null})",
       "mscale is 0.707"},
  };
  for (const auto& [model, changes, words] : cases) {
    Json config = make_hugging_face_config(model, NumberFormat::f32);
    config.update(parse_json(changes, ""));
    EXPECT_ERROR_WITH(words, parse_hugging_face_config(config, "config.json"));
  }
}

}  // namespace
}  // namespace tprimat
