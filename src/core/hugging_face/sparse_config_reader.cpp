#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "hugging_face/sparse_config.h"

namespace tprimat {
namespace {

class SparseReader {
 public:
  SparseReader(HuggingFaceFamily family, const ConfigKeys& keys, ModelSpec& model, Findings& findings)
      : family_(family), keys_(keys), model_(model), experts_(model.experts.emplace()), findings_(findings) {}

  void read() {
    switch (family_) {
      case HuggingFaceFamily::qwen2_moe:
      case HuggingFaceFamily::qwen3_moe: return read_qwen();
      case HuggingFaceFamily::deepseek_v2:
      case HuggingFaceFamily::deepseek_v3: return read_deepseek();
      case HuggingFaceFamily::gpt_oss: return read_gpt_oss();
      default: return read_mixtral();
    }
  }

 private:
  // transformers 5 writes num_local_experts where earlier versions wrote num_experts.
  int64_t read_count(int64_t otherwise) const {
    return keys_.size(keys_.find("num_experts") != nullptr ? "num_experts" : "num_local_experts", otherwise);
  }

  // The only MLPs are the experts.
  void read_whole_width() { experts_.ffn_hidden_size = model_.ffn_hidden_size; }

  void read_mixtral() {
    experts_.count = read_count(8);
    experts_.per_token = keys_.size("num_experts_per_tok", 2);
    read_whole_width();
    keys_.require("router_jitter_noise", 0.0);
    read_router_losses();
  }

  void read_gpt_oss() {
    experts_.count = read_count(128);
    experts_.per_token = keys_.size("num_experts_per_tok", 4);
    read_whole_width();
    model_.attention_sinks = true;
    read_router_losses();
  }

  void read_qwen() {
    const bool second = family_ == HuggingFaceFamily::qwen2_moe;
    experts_.count = read_count(second ? 60 : 128);
    experts_.per_token = keys_.size("num_experts_per_tok", second ? 4 : 8);
    experts_.ffn_hidden_size = keys_.size("moe_intermediate_size", second ? 1408 : 768);
    experts_.normalize_weights = keys_.flag("norm_topk_prob", false);
    experts_.shared_gate = second;
    if (second) {
      experts_.shared_ffn_hidden_size = keys_.size("shared_expert_intermediate_size", 5632);
      keys_.require("qkv_bias", true);
    }
    read_dense_layers();
    read_router_losses();
  }

  // One entry for each layer. Numbers of no layer mean nothing, in transformers too.
  std::vector<bool> list_dense_layers(const Json* listed, int64_t step) const {
    const int64_t layers = model_.num_layers;
    std::vector<bool> dense(static_cast<size_t>(layers));
    for (int64_t layer = 0; layer < layers; ++layer) dense[static_cast<size_t>(layer)] = (layer + 1) % step != 0;
    if (listed == nullptr) return dense;
    for (const Json& each : *listed)
      if (each.is_number_integer() && each.get<int64_t>() >= 0 && each.get<int64_t>() < layers)
        dense[static_cast<size_t>(each.get<int64_t>())] = true;
    return dense;
  }

  // The first dense layers and the interval behind them that give the same layers, if there are such.
  void read_dense_layers() {
    const Json* listed = keys_.find("mlp_only_layers");
    if (listed != nullptr && !listed->is_array()) return keys_.wrong("mlp_only_layers", "a list of layers");
    constexpr int64_t k_max_layers = 10000;
    const int64_t layers = model_.num_layers, step = keys_.size("decoder_sparse_step", 1);
    findings_.require(layers <= k_max_layers, fmt::format("num_hidden_layers must be at most {}", k_max_layers));
    if (layers > k_max_layers) return;
    const std::vector<bool> dense = list_dense_layers(listed, step);
    if (fits(dense, 0, step)) return set_dense_layers(0, step);
    const int64_t first = std::find(dense.begin(), dense.end(), false) - dense.begin();
    const int64_t next = std::find(dense.begin() + std::min(first + 1, layers), dense.end(), false) - dense.begin();
    const int64_t interval = next < layers ? next - first : 1;
    const int64_t before = first - (interval - 1);
    if (first < layers && before >= 0 && fits(dense, before, interval)) return set_dense_layers(before, interval);
    if (first < layers && fits(dense, first, 1)) return set_dense_layers(first, 1);
    keys_.refuse(listed != nullptr ? "mlp_only_layers" : "decoder_sparse_step",
                 "place dense layers first, then experts in every n-th layer");
  }

  static bool fits(const std::vector<bool>& dense, int64_t first, int64_t interval) {
    const auto layers = static_cast<int64_t>(dense.size());
    if (first + interval > layers) return false;
    for (int64_t layer = 0; layer < layers; ++layer)
      if (dense[static_cast<size_t>(layer)] != (layer < first || (layer - first + 1) % interval != 0)) return false;
    return true;
  }

  void set_dense_layers(int64_t first, int64_t interval) {
    experts_.first_dense_layers = first;
    experts_.layer_interval = interval;
  }

  void read_deepseek() {
    const bool v3 = family_ == HuggingFaceFamily::deepseek_v3;
    read_latent_attention();
    experts_.count = keys_.size("n_routed_experts", v3 ? 256 : 64);
    experts_.per_token = v3 ? keys_.size("num_experts_per_tok", 8) : keys_.size("num_experts_per_tok");
    experts_.ffn_hidden_size = keys_.size("moe_intermediate_size", v3 ? 2048 : 1407);
    read_shared_experts(v3 ? 1 : 2);
    experts_.first_dense_layers = keys_.count("first_k_dense_replace", v3 ? 3 : 0);
    experts_.weight_scale = keys_.number("routed_scaling_factor", v3 ? 2.5 : 1.0);
    experts_.router_score = v3 ? RouterScore::sigmoid : RouterScore::softmax;
    keys_.require("scoring_func", v3 ? "sigmoid" : "softmax");
    keys_.require("moe_layer_freq", 1);
    v3 ? read_v3() : read_v2();
    experts_.z_loss_coefficient = keys_.number("router_z_loss_coef", 0.0);
  }

  void read_shared_experts(int64_t otherwise) {
    constexpr int64_t k_max_shared = 1 << 20;
    const int64_t shared = keys_.size("n_shared_experts", otherwise);
    findings_.require(shared <= k_max_shared, fmt::format("n_shared_experts must be at most {}", k_max_shared));
    experts_.shared_ffn_hidden_size = std::min(shared, k_max_shared) * experts_.ffn_hidden_size;
  }

  void read_v2() {
    experts_.normalize_weights = false;
    keys_.require("norm_topk_prob", false);
    keys_.require("mlp_bias", false);
    const std::string method = keys_.text("topk_method", "greedy");
    if (method == "group_limited_greedy")
      read_groups(1, 1);
    else
      keys_.require("topk_method", "greedy");
    read_alpha();
  }

  void read_v3() {
    experts_.normalize_weights = keys_.flag("norm_topk_prob", true);
    keys_.require("rope_interleave", true);
    read_groups(8, 4);
    const bool later = keys_.find("num_mtp_layers") != nullptr;
    const int64_t predicted = keys_.count(later ? "num_mtp_layers" : "num_nextn_predict_layers", 0);
    if (predicted > 0) model_.prediction_layers = predicted;
    keys_.require("topk_method", "noaux_tc");
    read_alpha();
    if (keys_.find("topk_method") != nullptr) experts_.balancing = LoadBalancing::bias;
  }

  void read_groups(int64_t groups, int64_t per_token) {
    experts_.groups = keys_.size("n_group", groups);
    experts_.groups_per_token = keys_.size("topk_group", per_token);
  }

  void read_latent_attention() {
    LatentAttention& latent = model_.latent_attention.emplace();
    const bool direct = keys_.names("q_lora_rank") && keys_.find("q_lora_rank") == nullptr;
    latent.query_rank = direct ? 0 : keys_.size("q_lora_rank", 1536);
    latent.key_value_rank = keys_.size("kv_lora_rank", 512);
    latent.rope_head_dim = keys_.size("qk_rope_head_dim", 64);
    latent.value_head_dim = keys_.size("v_head_dim", 128);
    model_.head_dim = keys_.size("qk_nope_head_dim", 128);
    if (model_.num_key_value_heads != model_.num_attention_heads)
      findings_.require(false, "num_key_value_heads must be num_attention_heads with latent attention");
  }

  // DeepSeek's own key; of each sequence unless seq_aux is false.
  void read_alpha() {
    experts_.aux_loss_coefficient = keys_.number("aux_loss_alpha", 0.0);
    if (experts_.aux_loss_coefficient != 0.0) set_loss(keys_.flag("seq_aux", true));
  }

  // Transformers adds the loss only where it puts out the router's logits.
  void read_router_losses() {
    experts_.z_loss_coefficient = keys_.number("router_z_loss_coef", 0.0);
    if (!keys_.flag("output_router_logits", false)) return;
    experts_.aux_loss_coefficient = keys_.number("router_aux_loss_coef", 0.001);
    if (experts_.aux_loss_coefficient != 0.0) set_loss(keys_.flag("seq_aux", false));
  }

  void set_loss(bool of_sequence) {
    experts_.balancing = of_sequence ? LoadBalancing::sequence_aux_loss : LoadBalancing::aux_loss;
  }

  HuggingFaceFamily family_;
  const ConfigKeys& keys_;
  ModelSpec& model_;
  Experts& experts_;
  Findings& findings_;
};

}  // namespace

void read_sparse_config(HuggingFaceFamily family, const ConfigKeys& keys, ModelSpec& model, Findings& findings) {
  SparseReader(family, keys, model, findings).read();
}

}  // namespace tprimat
