#include "extract/model_shape.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "extract/scan_text.h"
#include "spec/model_catalogue.h"

namespace tprimat {
namespace {

// A configuration dump by any of the names that frameworks give a setting.
class DumpedSettings {
 public:
  explicit DumpedSettings(const std::map<std::string, std::string>& settings) : settings_(settings) {}

  std::string_view word(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (const auto found = settings_.find(key); found != settings_.end() && found->second != "None")
        return found->second;
    return {};
  }
  std::optional<int64_t> whole(std::initializer_list<const char*> keys) const {
    const auto value = parse_whole(word(keys));
    return value && *value > 0 ? value : std::nullopt;
  }
  bool is_true(std::initializer_list<const char*> keys) const {
    const std::string_view value = word(keys);
    return value == "True" || value == "true";
  }
  bool has(const char* key) const { return settings_.count(key) > 0; }

 private:
  const std::map<std::string, std::string>& settings_;
};

// Shapes that ModelSpec cannot tell: their FLOPs would be wrong.
bool is_beyond_us(const DumpedSettings& dump) {
  return dump.is_true({"multi_latent_attention"}) ||
         dump.whole({"num_experts", "num_moe_experts", "num_local_experts"}) ||
         dump.whole({"q_lora_rank", "kv_lora_rank"}) || dump.has("hybrid_override_pattern");
}

int64_t key_value_heads(const DumpedSettings& dump, int64_t heads) {
  const bool megatron = dump.has("group_query_attention");
  if (megatron && !dump.is_true({"group_query_attention"})) return heads;
  return dump.whole({"num_query_groups", "num_key_value_heads"}).value_or(heads);
}

// Megatron's defaults are those of GPT-3 where the dump does not say otherwise; a dump that says nothing of the MLP is
// no basis for FLOPs.
void read_kinds(const DumpedSettings& dump, ModelSpec& model) {
  const std::string_view activation = dump.word({"hidden_act", "activation_function"});
  model.mlp = dump.is_true({"swiglu"}) || activation == "silu" ? MlpKind::swiglu : MlpKind::gelu;
  const std::string_view norm = dump.word({"normalization"});
  model.norm = norm == "RMSNorm" || dump.has("rms_norm_eps") ? NormKind::rms : NormKind::layer;
  const std::string_view position = dump.word({"position_embedding_type"});
  model.position = position == "rope" || dump.has("rope_theta") ? PositionKind::rope : PositionKind::learned;
  const bool untied = dump.is_true({"untie_embeddings_and_output_weights"}) ||
                      dump.word({"tie_word_embeddings"}) == "False" || dump.word({"tie_word_embeddings"}) == "false";
  model.tied_embeddings = !untied;
  model.qkv_bias = dump.is_true({"add_qkv_bias"});
  model.linear_bias = dump.has("add_bias_linear") ? dump.is_true({"add_bias_linear"}) : model.mlp == MlpKind::gelu;
  model.qk_norm = dump.is_true({"qk_layernorm"});
}

bool states_mlp(const DumpedSettings& dump) {
  return dump.has("swiglu") || dump.has("hidden_act") || dump.has("activation_function") || dump.has("n_embd");
}

std::optional<ModelSpec> read_dump(const DumpedSettings& dump) {
  const auto layers = dump.whole({"num_layers", "num_hidden_layers", "n_layer"});
  const auto hidden = dump.whole({"hidden_size", "n_embd"});
  const auto heads = dump.whole({"num_attention_heads", "n_head"});
  const auto vocabulary = dump.whole({"vocab_size", "padded_vocab_size"});
  if (!layers || !hidden || !heads || !vocabulary || is_beyond_us(dump)) return std::nullopt;
  ModelSpec model;
  read_kinds(dump, model);
  const auto inner = dump.whole({"ffn_hidden_size", "intermediate_size", "n_inner"});
  // A GPT without the figure has 4 x hidden; what else it may be, and whether the MLP is gated, has to be stated.
  if (!inner && model.mlp != MlpKind::gelu) return std::nullopt;
  if (!states_mlp(dump) && (!inner || *inner != 4 * *hidden)) return std::nullopt;
  model.num_layers = *layers;
  model.hidden_size = *hidden;
  model.ffn_hidden_size = inner.value_or(4 * *hidden);
  model.num_attention_heads = *heads;
  model.num_key_value_heads = key_value_heads(dump, *heads);
  model.head_dim = dump.whole({"kv_channels", "head_dim"}).value_or(*hidden / *heads);
  model.vocab_size = *vocabulary;
  model.max_position_embeddings = dump.whole({"max_position_embeddings", "n_positions"}).value_or(1);
  return model;
}

}  // namespace

std::optional<ModelSpec> find_model_shape(const std::map<std::string, std::string>& settings,
                                          const LoggedFacts& facts) {
  if (auto model = read_dump(DumpedSettings(settings)); model && model->hidden_size < (int64_t{1} << 31)) {
    model->name = facts.model.value_or("");
    model->max_position_embeddings = std::max(model->max_position_embeddings, facts.sequence_length.value_or(1));
    if (check_model(*model, "").empty()) return model;
  }
  return facts.model ? find_model(*facts.model) : std::nullopt;
}

}  // namespace tprimat
