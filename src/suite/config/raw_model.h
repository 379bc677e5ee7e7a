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

// `count` and `per_token` are required where the model catalogue does not know them (models.cpp).
struct ExpertsSection {
  Whole count, per_token, ffn_hidden_size, shared_ffn_hidden_size;
  Flag shared_gate;
  Whole first_dense_layers, layer_interval, latent_size;
  std::optional<RouterScore> router_score;
  Flag normalize_weights;
  Number weight_scale;
  Whole groups, groups_per_token;
  std::optional<LoadBalancing> balancing;
  Number aux_loss_coefficient, z_loss_coefficient, capacity_factor;
  static constexpr auto fields() {
    using E = ExpertsSection;
    return field_list(
        field("count", &E::count, "routed experts of a layer"),
        field("per_token", &E::per_token, "experts that each token is routed to"),
        field("ffn_hidden_size", &E::ffn_hidden_size,
              "inner width of a routed expert; the model's ffn_hidden_size when absent"),
        field("shared_ffn_hidden_size", &E::shared_ffn_hidden_size,
              "total inner width of the shared experts, which every token passes; 0 (none) when absent"),
        field("shared_gate", &E::shared_gate, "the shared experts' output is scaled by a learned gate"),
        field("first_dense_layers", &E::first_dense_layers, "first layers with a dense MLP instead of experts"),
        field("layer_interval", &E::layer_interval,
              "of the layers after the first dense ones, every n-th has experts; 1 when absent"),
        field("latent_size", &E::latent_size, "width of the routed experts' input and output; hidden_size when absent"),
        field("router_score", &E::router_score, "function that turns the router's logits into scores"),
        field("normalize_weights", &E::normalize_weights, "the weights of the chosen experts add up to 1"),
        field("weight_scale", &E::weight_scale, "factor that scales the chosen experts' weights"),
        field("groups", &E::groups, "groups of experts"),
        field("groups_per_token", &E::groups_per_token, "groups from which a token's experts are chosen"),
        field("balancing", &E::balancing, "method that balances the experts' load"),
        field("aux_loss_coefficient", &E::aux_loss_coefficient, "coefficient of the balancing loss"),
        field("z_loss_coefficient", &E::z_loss_coefficient, "coefficient of the router z-loss"),
        field("capacity_factor", &E::capacity_factor,
              "an expert takes at most this multiple of the mean number of tokens and drops the rest; absent: it drops "
              "none"));
  }
  static constexpr KeyRange ranges[] = {{"count", 1, 1e5},
                                        {"per_token", 1, 1e5},
                                        {"ffn_hidden_size", 1, 1e7},
                                        {"shared_ffn_hidden_size", 0, 1e7},
                                        {"first_dense_layers", 0, 10000},
                                        {"layer_interval", 1, 10000},
                                        {"latent_size", 1, 1e6},
                                        {"weight_scale", 0, 1e6, true},
                                        {"groups", 1, 1e5},
                                        {"groups_per_token", 1, 1e5},
                                        {"aux_loss_coefficient", 0, 1e6},
                                        {"z_loss_coefficient", 0, 1e6},
                                        {"capacity_factor", 0, 1e6, true}};
};

struct LatentAttentionSection {
  Whole query_rank, key_value_rank, rope_head_dim, value_head_dim;
  static constexpr auto fields() {
    using L = LatentAttentionSection;
    return field_list(
        field("query_rank", &L::query_rank, "rank of the low-rank projection of queries; 0 (none) when absent"),
        field("key_value_rank", &L::key_value_rank, "rank of the low-rank projection of keys and values"),
        field("rope_head_dim", &L::rope_head_dim, "rotary part of a head, in addition to head_dim"),
        field("value_head_dim", &L::value_head_dim, "width of a head's values"));
  }
  static constexpr KeyRange ranges[] = {
      {"query_rank", 0, 1e6}, {"key_value_rank", 1, 1e6}, {"rope_head_dim", 1, 1e5}, {"value_head_dim", 1, 1e5}};
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
  Whole sliding_window, full_attention_layers;
  Flag attention_sinks;
  Whole prediction_layers;
  Flag shared_prediction;
  RopeScalingSection rope_scaling;
  LatentAttentionSection latent_attention;
  ExpertsSection experts;
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
        field("full_attention_layers", &M::full_attention_layers, "layers that ignore the sliding window"),
        field("attention_sinks", &M::attention_sinks, "each head has a learned sink logit in its softmax (gpt-oss)"),
        field("latent_attention", &M::latent_attention, "multi-head latent attention, MLA (DeepSeek)"),
        field("experts", &M::experts, "mixture of experts; absent: a dense model"),
        field("prediction_layers", &M::prediction_layers, "layers that predict further tokens, MTP (DeepSeek-V3)"),
        field("shared_prediction", &M::shared_prediction, "these layers share the weights of one block"),
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
  static constexpr KeyRange ranges[] = {{"num_parameters", 1, 1e14},
                                        {"num_layers", 1, 10000},
                                        {"hidden_size", 1, 1e6},
                                        {"ffn_hidden_size", 1, 1e7},
                                        {"num_attention_heads", 1, 1e5},
                                        {"num_key_value_heads", 1, 1e5},
                                        {"head_dim", 1, 1e5},
                                        {"vocab_size", 2, 1e8},
                                        {"max_position_embeddings", 1, 1e9},
                                        {"rope_theta", 0, 1e12, true},
                                        {"norm_eps", 0, 1, true},
                                        {"sliding_window", 1, 1e9},
                                        {"full_attention_layers", 0, 10000},
                                        {"prediction_layers", 0, 100}};
};

}  // namespace tprimat::suite::raw
