#include "extract/logged_experts.h"

#include <fmt/format.h>

#include <algorithm>

#include "extract/common/layer_pattern.h"
#include "extract/scan_text.h"
#include "result/printed_settings.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_max_size = int64_t{1} << 31;

// Layers that the pattern gives experts, as "the first n are dense, of the others each m-th has experts". Their place
// does not matter to the work, their number does.
bool describe_pattern(const std::vector<bool>& pattern, Experts& experts) {
  std::vector<int64_t> sparse;
  for (size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i]) sparse.push_back(static_cast<int64_t>(i));
  if (sparse.empty()) return false;
  const auto count = static_cast<int64_t>(sparse.size()), layers = static_cast<int64_t>(pattern.size());
  const int64_t interval = count > 1 ? sparse[1] - sparse[0] : 1;
  for (size_t i = 1; i < sparse.size(); ++i)
    if (sparse[i] - sparse[i - 1] != interval) return false;
  for (int64_t first = std::max<int64_t>(0, sparse[0] - interval + 1); first <= sparse[0]; ++first)
    if ((layers - first) / interval == count) {
      experts.first_dense_layers = first, experts.layer_interval = interval;
      return true;
    }
  return false;
}

// Megatron-LM: a list, or n for a layer with experts before each n - 1 dense ones.
bool read_layer_frequency(const DumpedSettings& dump, int64_t num_layers, Experts& experts, std::string& why_not) {
  const std::string_view text = dump.word({"moe_layer_freq"});
  if (text.empty() && dump.has("moe_layer_freq")) return true;  // None: all
  if (text.empty()) {
    why_not = "it does not state moe_layer_freq";
    return false;
  }
  auto pattern = parse_layer_pattern(text);
  if (const auto every = dump.whole({"moe_layer_freq"}); every && !pattern) {
    pattern.emplace();
    for (int64_t i = 0; i < std::min(num_layers, int64_t{4096}); ++i) pattern->push_back(i % *every == 0);
  }
  if (pattern && static_cast<int64_t>(pattern->size()) == num_layers && describe_pattern(*pattern, experts))
    return true;
  why_not = fmt::format("its layers with experts (moe_layer_freq {}) follow no supported pattern", text.substr(0, 80));
  return false;
}

LoadBalancing megatron_balancing(const DumpedSettings& dump) {
  const std::string_view type = dump.word({"moe_router_load_balancing_type"});
  if (dump.is_true({"moe_router_enable_expert_bias"})) return LoadBalancing::bias;
  if (dump.number({"moe_aux_loss_coeff"}).value_or(0) <= 0) return LoadBalancing::none;
  if (contains(type, "seq_aux_loss")) return LoadBalancing::sequence_aux_loss;
  return contains(type, "aux_loss") ? LoadBalancing::aux_loss : LoadBalancing::none;
}

void read_megatron_router(const DumpedSettings& dump, Experts& experts) {
  experts.router_score =
      parse_enum<RouterScore>(dump.word({"moe_router_score_function"})).value_or(RouterScore::softmax);
  const bool softmax_first = dump.is_true({"moe_router_pre_softmax"});
  experts.normalize_weights = experts.router_score == RouterScore::sigmoid || !softmax_first;
  experts.weight_scale = dump.number({"moe_router_topk_scaling_factor"}).value_or(1);
  experts.groups = dump.whole({"moe_router_num_groups"}).value_or(1);
  experts.groups_per_token = dump.whole({"moe_router_group_topk"}).value_or(1);
  experts.balancing = megatron_balancing(dump);
  experts.aux_loss_coefficient = std::max(0.0, dump.number({"moe_aux_loss_coeff"}).value_or(0));
  experts.z_loss_coefficient = std::max(0.0, dump.number({"moe_z_loss_coeff"}).value_or(0));
  const auto capacity = dump.number({"moe_expert_capacity_factor"});
  if (capacity && *capacity > 0) experts.capacity_factor = capacity;
}

// "M-M*-ME" of Megatron-LM: a letter per layer of a hybrid, "|" where the pipeline is cut.
std::string_view hybrid_pattern(const DumpedSettings& dump) {
  return dump.word({"hybrid_override_pattern", "hybrid_layer_pattern"});
}

// The layers of a hybrid that are neither mixers nor attention are MLPs; of which kind does not depend on their place.
bool read_hybrid_layers(std::string_view pattern, const ModelSpec& model, Experts& experts, std::string& why_not) {
  const int64_t sparse = std::count(pattern.begin(), pattern.end(), 'E');
  if (sparse == 0) why_not = "its pattern of layers has no layer with experts";
  experts.first_dense_layers = model.mlp_layers() - sparse;
  return sparse > 0;
}

bool read_megatron(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  Experts& experts = *model.experts;
  const auto per_token = dump.whole({"moe_router_topk"});
  if (!per_token) {
    why_not = "it does not state moe_router_topk";
    return false;
  }
  experts.per_token = *per_token;
  experts.ffn_hidden_size = dump.whole({"moe_ffn_hidden_size"}).value_or(model.ffn_hidden_size);
  experts.shared_ffn_hidden_size = dump.whole({"moe_shared_expert_intermediate_size"}).value_or(0);
  experts.shared_gate = dump.is_true({"moe_shared_expert_gate"});
  experts.latent_size = dump.whole({"moe_latent_size"});
  read_megatron_router(dump, experts);
  if (model.mamba) return read_hybrid_layers(hybrid_pattern(dump), model, experts, why_not);
  return read_layer_frequency(dump, model.num_layers, experts, why_not);
}

// Megatron-DeepSpeed: of each expert_interval layers the last has experts.
bool read_megatron_deepspeed(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  Experts& experts = *model.experts;
  const auto per_token = dump.whole({"topk"});
  if (!per_token || dump.word({"mlp_type"}) == "residual") {
    why_not = per_token ? "each token also passes a dense MLP (mlp_type residual)" : "it does not state topk";
    return false;
  }
  experts.per_token = *per_token;
  experts.ffn_hidden_size = model.ffn_hidden_size;
  experts.layer_interval = dump.whole({"expert_interval"}).value_or(1);
  experts.aux_loss_coefficient = std::max(0.0, dump.number({"moe_loss_coeff"}).value_or(0));
  experts.balancing = experts.aux_loss_coefficient > 0 ? LoadBalancing::aux_loss : LoadBalancing::none;
  const bool drops = !dump.has("moe_token_dropping") || dump.is_true({"moe_token_dropping"});
  const auto capacity = dump.number({"moe_train_capacity_factor"});
  if (drops && capacity && *capacity > 0) experts.capacity_factor = capacity;
  return true;
}

LoadBalancing hugging_face_balancing(const DumpedSettings& dump, const Experts& experts) {
  if (dump.word({"topk_method"}) == "noaux_tc") return LoadBalancing::bias;
  if (experts.aux_loss_coefficient <= 0) return LoadBalancing::none;
  return dump.is_true({"seq_aux"}) ? LoadBalancing::sequence_aux_loss : LoadBalancing::aux_loss;
}

void read_hugging_face_router(const DumpedSettings& dump, Experts& experts) {
  const std::string_view kind = dump.family();
  const bool is_deepseek_v3 = dump.word({"topk_method"}) == "noaux_tc" || kind == "deepseek_v3";
  experts.router_score = parse_enum<RouterScore>(dump.word({"scoring_func"}))
                             .value_or(is_deepseek_v3 ? RouterScore::sigmoid : RouterScore::softmax);
  if (dump.has("norm_topk_prob")) experts.normalize_weights = dump.is_true({"norm_topk_prob"});
  experts.weight_scale = dump.number({"routed_scaling_factor"}).value_or(1);
  experts.groups = dump.whole({"n_group"}).value_or(1);
  experts.groups_per_token = dump.whole({"topk_group"}).value_or(1);
  // The loss is part of the training only where the model hands out its router's logits.
  const bool adds_loss = dump.is_true({"output_router_logits"});
  if (adds_loss) experts.aux_loss_coefficient = std::max(0.0, dump.number({"router_aux_loss_coef"}).value_or(0));
  experts.balancing = hugging_face_balancing(dump, experts);
}

// Dense layers are the first ones, and maybe those between each n-th.
bool read_hugging_face_layers(const DumpedSettings& dump, Experts& experts, std::string& why_not) {
  experts.first_dense_layers = dump.whole({"first_k_dense_replace"}).value_or(0);
  experts.layer_interval = dump.whole({"decoder_sparse_step"}).value_or(1);
  const std::string_view dense = dump.word({"mlp_only_layers"});
  const bool is_plain = (dense.empty() || dense == "[]") && dump.whole({"moe_layer_freq"}).value_or(1) == 1;
  if (!is_plain)
    why_not = fmt::format("its layers with experts ({}) follow no supported pattern",
                          dense.empty() ? "moe_layer_freq" : "mlp_only_layers");
  return is_plain;
}

bool read_hugging_face(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  Experts& experts = *model.experts;
  const auto per_token = dump.whole({"num_experts_per_tok", "experts_per_token", "moe_topk"});
  // Mixtral and gpt-oss have no other MLPs, so their experts' width has the plain name.
  const bool has_one_width = dump.has("num_local_experts");
  const auto inner = dump.whole({"moe_intermediate_size"});
  if (!per_token || (!inner && !has_one_width)) {
    why_not = per_token ? "it does not state moe_intermediate_size" : "it does not state num_experts_per_tok";
    return false;
  }
  experts.per_token = *per_token;
  experts.ffn_hidden_size = inner.value_or(model.ffn_hidden_size);
  const int64_t shared = dump.whole({"n_shared_experts"}).value_or(0);
  experts.shared_ffn_hidden_size = dump.whole({"shared_expert_intermediate_size"})
                                       .value_or(shared < k_max_size ? shared * experts.ffn_hidden_size : -1);
  experts.shared_gate = dump.has("shared_expert_intermediate_size");
  read_hugging_face_router(dump, experts);
  return read_hugging_face_layers(dump, experts, why_not);
}

bool read_torchtitan(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  Experts& experts = *model.experts;
  const auto per_token = dump.whole({"model_args.moe_args.top_k"});
  const auto inner = dump.whole({"model_args.moe_inter_dim"});
  if (!per_token || !inner) {
    why_not = per_token ? "it does not state moe_inter_dim" : "it does not state top_k";
    return false;
  }
  experts.per_token = *per_token;
  experts.ffn_hidden_size = *inner;
  const int64_t shared = dump.whole({"model_args.moe_args.num_shared_experts"}).value_or(0);
  experts.shared_ffn_hidden_size = shared < k_max_size ? shared * *inner : -1;
  experts.first_dense_layers = dump.whole({"model_args.n_dense_layers"}).value_or(0);
  experts.router_score =
      parse_enum<RouterScore>(dump.word({"model_args.moe_args.score_func"})).value_or(RouterScore::softmax);
  experts.normalize_weights = dump.is_true({"model_args.moe_args.route_norm"});
  experts.weight_scale = dump.number({"model_args.moe_args.route_scale"}).value_or(1);
  experts.groups = dump.whole({"model_args.n_expert_groups", "model_args.moe_args.num_expert_groups"}).value_or(1);
  experts.groups_per_token =
      dump.whole({"model_args.n_limited_groups", "model_args.moe_args.num_limited_groups"}).value_or(1);
  const bool biased = dump.number({"model_args.moe_args.load_balance_coeff"}).value_or(0) > 0;
  experts.balancing = biased ? LoadBalancing::bias : LoadBalancing::none;
  return true;
}

// Positive counts of entries by name, "full_attention": 18; nothing where the list is cut.
std::optional<int64_t> count_layers(const DumpedSettings& dump, std::string_view kind) {
  const auto layers = parse_word_list(dump.word({"layer_types"}));
  return layers ? std::optional(std::count(layers->begin(), layers->end(), kind)) : std::nullopt;
}

// "(128, 0)" of Megatron-LM: keys before the query, and behind it; -1: all.
std::optional<int64_t> megatron_window(const DumpedSettings& dump) {
  std::string_view text = dump.word({"window_size"});
  while (!text.empty() && (text.front() == '(' || text.front() == '[')) text.remove_prefix(1);
  const auto before = parse_whole(text);
  return before && *before >= 0 && *before < k_max_size ? std::optional(*before + 1) : std::nullopt;
}

// Megatron-LM: a list with 1 for layers with the window, or n for a full layer after n - 1 with it.
std::optional<int64_t> megatron_full_layers(const DumpedSettings& dump, int64_t num_layers) {
  const std::string_view text = dump.word({"window_attn_skip_freq"});
  if (const auto pattern = parse_layer_pattern(text)) return std::count(pattern->begin(), pattern->end(), false);
  const auto every = dump.whole({"window_attn_skip_freq"});
  return every ? std::optional(num_layers / *every) : std::nullopt;
}

// "moe_ffn_hidden_size -1": stated, but as no size, so that its default does not hold.
std::string find_impossible_size(const DumpedSettings& dump) {
  for (const char* name : {"moe_ffn_hidden_size", "moe_intermediate_size", "model_args.moe_inter_dim"})
    if (const std::string_view value = dump.word({name}); !value.empty() && !dump.whole({name}))
      return fmt::format("its {} is {}, which is no size", name, value.substr(0, 40));
  for (const char* name : {"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"})
    if (const std::string_view value = dump.word({name});
        !value.empty() && !dump.whole({name}) && parse_whole(value) != 0)
      return fmt::format("its {} is {}, which is no size", name, value.substr(0, 40));
  return "";
}

}  // namespace

bool read_experts(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  model.experts->count = 0;
  why_not = find_impossible_size(dump);
  if (!why_not.empty()) return false;
  if (dump.has_any({"moe_router_topk", "moe_ffn_hidden_size"})) return read_megatron(dump, model, why_not);
  if (dump.has("model_args.dim")) return read_torchtitan(dump, model, why_not);
  if (dump.has("expert_interval")) return read_megatron_deepspeed(dump, model, why_not);
  return read_hugging_face(dump, model, why_not);
}

void read_latent_attention(const DumpedSettings& dump, ModelSpec& model) {
  // Megatron-LM prints the ranks even where they have no effect.
  if (dump.has("multi_latent_attention") && !dump.is_true({"multi_latent_attention"})) return;
  const auto rank = dump.whole({"kv_lora_rank", "model_args.kv_lora_rank"});
  if (!rank) return;
  LatentAttention latent;
  latent.key_value_rank = *rank;
  latent.query_rank = dump.whole({"q_lora_rank", "model_args.q_lora_rank"}).value_or(0);
  latent.rope_head_dim =
      dump.whole({"qk_rope_head_dim", "qk_pos_emb_head_dim", "model_args.qk_rope_head_dim"}).value_or(0);
  latent.value_head_dim = dump.whole({"v_head_dim", "model_args.v_head_dim"}).value_or(0);
  model.latent_attention = latent;
  model.head_dim = dump.whole({"qk_nope_head_dim", "qk_head_dim", "model_args.qk_nope_head_dim"}).value_or(0);
  model.num_key_value_heads = model.num_attention_heads;
  model.qk_norm = false;  // its norms are those of the narrow products
}

void read_window(const DumpedSettings& dump, ModelSpec& model) {
  const bool is_off_by_switch = dump.has("use_sliding_window") && !dump.is_true({"use_sliding_window"});
  const bool is_megatron = dump.has("window_size");
  const auto window = is_megatron ? megatron_window(dump) : dump.whole({"sliding_window"});
  const bool is_unused = is_off_by_switch || (!is_megatron && count_layers(dump, "sliding_attention") == 0);
  if (window && !is_unused && *window < k_max_size) {
    model.sliding_window = window;
    model.full_attention_layers =
        is_megatron ? megatron_full_layers(dump, model.num_layers) : count_layers(dump, "full_attention");
  }
  if (dump.word({"softmax_type"}) == "learnable" || dump.family() == "gpt_oss" || dump.is_true({"use_sink_attention"}))
    model.attention_sinks = true;
}

bool read_mixers(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  const std::string_view pattern = hybrid_pattern(dump);
  if (pattern.empty()) return true;
  const auto count = [&](char letter) { return std::count(pattern.begin(), pattern.end(), letter); };
  MambaMixers mixers;
  mixers.layers = count('M'), mixers.attention_layers = count('*');
  mixers.state = dump.whole({"mamba_state_dim"}).value_or(0);
  mixers.groups = dump.whole({"mamba_num_groups"}).value_or(0);
  const int64_t width = dump.whole({"mamba_head_dim"}).value_or(0);
  const bool is_known =
      mixers.layers > 0 && mixers.layers + mixers.attention_layers + count('-') + count('E') + count('|') ==
                               static_cast<int64_t>(pattern.size());
  const bool fits = static_cast<int64_t>(pattern.size()) - count('|') == model.num_layers;
  if (!is_known || !fits || width == 0 || width > model.hidden_size) {
    why_not = fmt::format("it is a hybrid with unknown layers ({})", pattern.substr(0, 40));
    return false;
  }
  // Without a number of heads a mixer is twice as wide as the model.
  mixers.heads = dump.whole({"mamba_num_heads"}).value_or(2 * model.hidden_size / width);
  mixers.inner_width = mixers.heads < k_max_size ? mixers.heads * width : 0;
  model.mamba = mixers;
  return true;
}

void read_prediction_layers(const DumpedSettings& dump, ModelSpec& model) {
  // Hugging Face's models state num_nextn_predict_layers and do not build them.
  model.prediction_layers = dump.whole({"mtp_num_layers"});
  if (model.prediction_layers && dump.is_true({"mtp_use_repeated_layer"})) model.shared_prediction = true;
}

std::string find_uncountable(const DumpedSettings& dump) {
  for (const char* name : {"compress_ratios", "experimental_attention_variant", "linear_attention_freq",
                           "linear_attn_config", "attention_chunk_size", "index_topk"})
    if (const std::string_view value = dump.word({name}); !value.empty() && !is_off(value))
      return fmt::format("its attention ({} {}) is not supported by the FLOP formulas", name, value.substr(0, 40));
  if (!dump.family().empty() && dump.whole({"linear_num_value_heads"}))  // Megatron-LM prints it for every model
    return "its attention (linear_num_value_heads) is not supported by the FLOP formulas";
  if (const std::string_view layers = dump.word({"layer_types"}); !layers.empty()) {
    const auto full = count_layers(dump, "full_attention"), windowed = count_layers(dump, "sliding_attention");
    const auto all = parse_word_list(layers);
    if (!all || *full + *windowed != static_cast<int64_t>(all->size()))
      return "some layers have neither full nor sliding attention (layer_types)";
  }
  if (dump.is_true({"is_hybrid_model"}) && hybrid_pattern(dump).empty())
    return "it is a hybrid of several kinds of layers (is_hybrid_model)";
  for (const char* name : {"heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json"})
    if (!dump.word({name}).empty()) return fmt::format("its layers have several shapes ({})", name);
  return "";
}

}  // namespace tprimat::logs
