#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "spec/attention.h"
#include "spec/experts.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

enum class NormKind { rms, layer };
enum class MlpKind { swiglu, gelu };
enum class PositionKind { rope, learned };

enum class RopeScalingKind { linear, llama3, yarn };

// How rotary frequencies are stretched for sequences longer than those of the first training (the `rope_scaling` of
// Hugging Face's config.json; formulas in ops/rope.h).
struct RopeScaling {
  RopeScalingKind type = RopeScalingKind::llama3;
  double factor = 8.0;
  double low_freq_factor = 1.0;                     // llama3
  double high_freq_factor = 4.0;                    // llama3
  int64_t original_max_position_embeddings = 8192;  // llama3, yarn
  double beta_fast = 32.0;                          // yarn
  double beta_slow = 1.0;                           // yarn

  static constexpr auto fields() {
    using R = RopeScaling;
    return field_list(
        field("type", &R::type, "scaling rule of the frequencies"),
        field("factor", &R::factor, "context extension factor"),
        field("low_freq_factor", &R::low_freq_factor, "llama3: rotations below which a frequency is divided by factor"),
        field("high_freq_factor", &R::high_freq_factor, "llama3: rotations above which a frequency is kept"),
        field("original_max_position_embeddings", &R::original_max_position_embeddings,
              "original context length, in tokens"),
        field("beta_fast", &R::beta_fast, "yarn: rotations above which a frequency is kept"),
        field("beta_slow", &R::beta_slow, "yarn: rotations below which a frequency is divided by factor"));
  }
  bool operator==(const RopeScaling&) const = default;
};

// The shape of a decoder-only Transformer: everything that decides parameters, FLOPs and bytes.
struct ModelSpec {
  std::string name;       // key in the config and in file names: "llama"
  std::string full_name;  // for people: "Llama 3.1 8B"
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  bool tied_embeddings = false;
  bool qkv_bias = false;     // bias on the query, key and value products only (Qwen 2.5)
  bool linear_bias = false;  // bias on every linear layer (GPT-2)
  bool qk_norm = false;      // RMSNorm per head on queries and keys (Qwen 3)
  NormKind norm = NormKind::rms;
  MlpKind mlp = MlpKind::swiglu;
  PositionKind position = PositionKind::rope;
  double rope_theta = 10000.0;
  std::optional<RopeScaling> rope_scaling;
  double norm_eps = 1e-5;
  std::optional<int64_t> sliding_window;              // keys each query sees
  std::optional<int64_t> full_attention_layers = {};  // layers that ignore sliding_window
  std::optional<bool> attention_sinks = {};           // a learned logit per head that takes attention away (gpt-oss)
  std::optional<LatentAttention> latent_attention = {};
  std::optional<MambaMixers> mamba = {};  // a hybrid
  std::optional<Experts> experts = {};    // a mixture of experts; absent: dense
  std::optional<int64_t> prediction_layers =
      {};  // layers that predict further tokens, MTP (arXiv 2412.19437, section 2.2)
  std::optional<bool> shared_prediction = {};  // one block whose weights all of them share

  bool is_sparse() const { return experts.has_value(); }
  int64_t attention_layers() const { return mamba ? mamba->attention_layers : num_layers; }
  int64_t mlp_layers() const { return mamba ? num_layers - mamba->layers - mamba->attention_layers : num_layers; }
  int64_t expert_layers() const { return experts ? experts->layers(mlp_layers()) : 0; }
  int64_t dense_layers() const { return mlp_layers() - expert_layers(); }  // with a dense MLP

  static constexpr auto fields() {
    using M = ModelSpec;
    return field_list(
        field("name", &M::name, "key of the model in the config"), field("full_name", &M::full_name, "name for people"),
        field("num_layers", &M::num_layers, "Transformer blocks"),
        field("hidden_size", &M::hidden_size, "width of the residual stream"),
        field("ffn_hidden_size", &M::ffn_hidden_size, "inner width of the MLP"),
        field("num_attention_heads", &M::num_attention_heads, "query heads"),
        field("num_key_value_heads", &M::num_key_value_heads, "key and value heads (grouped-query attention)"),
        field("head_dim", &M::head_dim, "width of one head"),
        field("vocab_size", &M::vocab_size, "tokens in the vocabulary, without padding"),
        field("max_position_embeddings", &M::max_position_embeddings,
              "longest sequence the model is meant for, in tokens"),
        field("tied_embeddings", &M::tied_embeddings, "the head shares the embedding's weights"),
        field("qkv_bias", &M::qkv_bias, "bias on the query, key and value products"),
        field("linear_bias", &M::linear_bias, "bias on every linear layer"),
        field("qk_norm", &M::qk_norm, "RMSNorm per head on queries and keys"),
        field("norm", &M::norm, "kind of normalisation"), field("mlp", &M::mlp, "kind of MLP"),
        field("position", &M::position, "kind of position encoding"),
        field("rope_theta", &M::rope_theta, "base of the rotary frequencies"),
        field("rope_scaling", &M::rope_scaling, "scaling of the rotary frequencies"),
        field("norm_eps", &M::norm_eps, "epsilon inside the norm's square root"),
        field("sliding_window", &M::sliding_window, "keys each query sees, in tokens"),
        field("full_attention_layers", &M::full_attention_layers, "layers that ignore the sliding window"),
        field("attention_sinks", &M::attention_sinks, "each head has a learned sink logit in its softmax"),
        field("latent_attention", &M::latent_attention, "multi-head latent attention (MLA)"),
        field("mamba", &M::mamba, "Mamba-2 mixers of a hybrid"),
        field("experts", &M::experts, "mixture of experts; absent: a dense model"),
        field("prediction_layers", &M::prediction_layers, "layers that predict further tokens (MTP)"),
        field("shared_prediction", &M::shared_prediction, "these layers share the weights of one block"));
  }
  bool operator==(const ModelSpec&) const = default;
};

// The problems of a shape, as sentences ("hidden_size 4096 is not ..."); empty when it is sound. Each names `where`.
std::vector<Problem> check_model(const ModelSpec& model, const std::string& where);

// What a shape has beyond a dense Transformer with one kind of attention: "mixtures of experts", "latent attention".
// Empty for the shapes that the native trainer knows.
std::vector<std::string> list_special_parts(const ModelSpec& model);

// Layers that a model of this kind has at least.
int64_t least_layers(const ModelSpec& model);

// Exact parameter counts by component.
struct ParameterCount {
  int64_t embedding = 0;   // token embedding and learned positions
  int64_t attention = 0;   // all layers: weights and biases of q, k, v, o, norms of heads and latents, sinks
  int64_t mamba = 0;       // all mixers of a hybrid
  int64_t mlp = 0;         // all layers: dense MLPs, all experts, routers
  int64_t norms = 0;       // block norms and the final norm
  int64_t head = 0;        // 0 when tied
  int64_t prediction = 0;  // layers that predict further tokens; published totals leave them out
  int64_t total() const { return embedding + attention + mamba + mlp + norms + head + prediction; }

  int64_t idle = 0;  // of experts that a token does not pass
  int64_t active() const { return total() - idle; }

  // Weights that multiply each token: the head included even when tied, of experts only the active ones, the head again
  // for each layer that predicts; no biases, norms or embedding look-up.
  int64_t matmul_active = 0;
};
ParameterCount count_parameters(const ModelSpec& model);

// Keys that a query sees, on average over the sequence: in `causal` those before it, else all of the window or
// sequence.
double keys_per_query(const ModelSpec& model, int64_t sequence_length, bool causal);

// Model FLOPs of one training step (forward and backward) per token, by a named formula; recompute is never in it.
//   full    6·matmul_active + 12·layers·heads·head_dim·SL   PaLM (arXiv 2204.02311, app. B), torchtitan, nanotron
//   causal  the attention term halved                       Megatron-LM (arXiv 2205.05198 counts full; its code halves)
//   6n      6·all parameters that a token passes            Kaplan et al. (arXiv 2001.08361)
// With latent attention, queries against keys and values have their own widths; a hybrid's mixers add their scan. The
// sum of the parts of break_down() (spec/flop_breakdown.h) is `full` or `causal`.
// With a sliding window shorter than SL, `full` counts min(SL, window) keys per query and `causal` the exact mean of
// keys seen, at most SL/2. CHECKs that sequence_length is positive; the model must have passed check_model.
//
// Where only `trainable_parameters` are updated, a frozen weight has no gradient of its own: it takes 4 FLOPs a token
// instead of 6 (forward, and the gradient of its input, which trained layers below it need). Adapters count as if they
// were part of the model's weights: their own forward pass, below a hundredth, is in no formula.
double flops_per_token(const ModelSpec& model, int64_t sequence_length, FlopFormula formula,
                       std::optional<int64_t> trainable_parameters = {});

// "causal/1": a formula's name and version, stored with every figure that is computed by it.
std::string formula_id(FlopFormula formula);

}  // namespace tprimat
