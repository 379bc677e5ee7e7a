#pragma once

#include "config/raw_types.h"
#include "spec/model_spec.h"
#include "text/fields.h"

// models, as written.
namespace tprimat::suite::raw {

// The type decides which of these are required (models.cpp).
struct RopeScalingSection {
  std::optional<RopeScalingKind> type;
  Number factor, low_freq_factor, high_freq_factor;
  Whole original_max_position_embeddings;
  Number beta_fast, beta_slow;
  static constexpr auto fields() {
    using R = RopeScalingSection;
    return field_list(
        field("type", &R::type, "scaling rule of the rotary frequencies"),
        field("factor", &R::factor, "context extension factor"),
        field("low_freq_factor", &R::low_freq_factor,
              "llama3: rotations below which a frequency is divided by factor; 1 when absent"),
        field("high_freq_factor", &R::high_freq_factor,
              "llama3: rotations above which a frequency is kept; 4 when absent"),
        field("original_max_position_embeddings", &R::original_max_position_embeddings,
              "llama3, yarn: original context length, in tokens"),
        field("beta_fast", &R::beta_fast, "yarn: rotations above which a frequency is kept; 32 when absent"),
        field("beta_slow", &R::beta_slow,
              "yarn: rotations below which a frequency is divided by factor; 1 when absent"));
  }
  static constexpr KeyAlias aliases[] = {{"rope_type", "type"}};
  static constexpr KeyRange ranges[] = {{"factor", 1, 1e6},
                                        {"low_freq_factor", 0, 1e6, true},
                                        {"high_freq_factor", 0, 1e6, true},
                                        {"original_max_position_embeddings", 1, 1e9},
                                        {"beta_fast", 0, 1e6, true},
                                        {"beta_slow", 0, 1e6, true}};
};

struct Model {
  Text name, full_name;
  Number num_parameters;
  Whole num_layers, hidden_size, ffn_hidden_size, num_attention_heads, num_key_value_heads, head_dim, vocab_size;
  Whole max_position_embeddings;
  Flag tied_embeddings, qkv_bias, linear_bias, qk_norm;
  std::optional<NormKind> norm;
  std::optional<MlpKind> mlp;
  std::optional<PositionKind> position;
  Number rope_theta, norm_eps;
  Whole sliding_window, num_experts, experts_per_token;
  RopeScalingSection rope_scaling;
  Text dataset_path, initial_weights, tokenizer_path, nemo_recipe, primus_config;
  static constexpr auto fields() {
    using M = Model;
    return field_list(
        field("name", &M::name, "the model's usual name; selects the shape of a public model"),
        field("full_name", &M::full_name, "display name"),
        field("num_parameters", &M::num_parameters, "published parameter count; checked against the shape"),
        field("num_layers", &M::num_layers, "Transformer blocks"),
        field("hidden_size", &M::hidden_size, "width of the residual stream"),
        field("ffn_hidden_size", &M::ffn_hidden_size, "inner width of the MLP"),
        field("num_attention_heads", &M::num_attention_heads, "query heads"),
        field("num_key_value_heads", &M::num_key_value_heads, "key and value heads (grouped-query attention)"),
        field("head_dim", &M::head_dim, "width of one head; hidden_size / num_attention_heads when absent"),
        field("vocab_size", &M::vocab_size, "tokens in the vocabulary, without padding"),
        field("max_position_embeddings", &M::max_position_embeddings, "longest sequence, in tokens"),
        field("tied_embeddings", &M::tied_embeddings, "the head shares the embedding's weights"),
        field("qkv_bias", &M::qkv_bias, "bias on the query, key and value products (Qwen 2.5)"),
        field("linear_bias", &M::linear_bias, "bias on every linear layer (GPT-2)"),
        field("qk_norm", &M::qk_norm, "RMSNorm per head on queries and keys (Qwen 3)"),
        field("norm", &M::norm, "kind of normalisation"), field("mlp", &M::mlp, "kind of MLP"),
        field("position", &M::position, "kind of position encoding"),
        field("rope_theta", &M::rope_theta, "base of the rotary frequencies"),
        field("rope_scaling", &M::rope_scaling, "scaling of the rotary frequencies for longer sequences"),
        field("norm_eps", &M::norm_eps, "epsilon inside the norm's square root"),
        field("sliding_window", &M::sliding_window, "keys each query sees, in tokens"),
        field("num_experts", &M::num_experts, "experts per layer"),
        field("experts_per_token", &M::experts_per_token, "experts each token is routed to"),
        field("dataset_path", &M::dataset_path, "prefix of a Megatron .bin/.idx pair; absent: synthetic tokens"),
        field("initial_weights", &M::initial_weights,
              "folder of a Hugging Face config.json and safetensors to start from; absent: random weights"),
        field("tokenizer_path", &M::tokenizer_path, "tokenizer: a folder or a hub name"),
        field("nemo_recipe", &M::nemo_recipe, "NeMo's recipe for the model"),
        field("primus_config", &M::primus_config, "Primus's configuration file for the model"));
  }
  static constexpr KeyAlias aliases[] = {{"num_query_groups", "num_key_value_heads"},
                                         {"tie_word_embeddings", "tied_embeddings"},
                                         {"max_sequence_length", "max_position_embeddings"}};
  static constexpr KeyRange ranges[] = {
      {"num_parameters", 1, 1e14},   {"num_layers", 1, 10000},        {"hidden_size", 1, 1e6},
      {"ffn_hidden_size", 1, 1e7},   {"num_attention_heads", 1, 1e5}, {"num_key_value_heads", 1, 1e5},
      {"head_dim", 1, 1e5},          {"vocab_size", 2, 1e8},          {"max_position_embeddings", 1, 1e9},
      {"rope_theta", 0, 1e12, true}, {"norm_eps", 0, 1, true},        {"sliding_window", 1, 1e9},
      {"num_experts", 1, 1e5},       {"experts_per_token", 1, 1e5}};
};

}  // namespace tprimat::suite::raw
