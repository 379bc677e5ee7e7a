#include "spec/model_catalogue.h"

#include <map>

#include "base/check.h"
#include "spec/tsv_rows.h"

namespace tprimat {
namespace embedded {
extern const std::string_view models_tsv;
}

namespace {

int64_t parse_count(std::string_view text) { return static_cast<int64_t>(parse_figure(text)); }

using SetTrait = void (*)(ModelSpec& model, double value);
const std::map<std::string_view, SetTrait> k_traits = {
    {"tied", [](ModelSpec& model, double) { model.tied_embeddings = true; }},
    {"qkv_bias", [](ModelSpec& model, double) { model.qkv_bias = true; }},
    {"linear_bias", [](ModelSpec& model, double) { model.linear_bias = true; }},
    {"qk_norm", [](ModelSpec& model, double) { model.qk_norm = true; }},
    {"layer_norm", [](ModelSpec& model, double) { model.norm = NormKind::layer; }},
    {"gelu", [](ModelSpec& model, double) { model.mlp = MlpKind::gelu; }},
    {"learned_positions", [](ModelSpec& model, double) { model.position = PositionKind::learned; }},
    {"theta", [](ModelSpec& model, double value) { model.rope_theta = value; }},
    {"eps", [](ModelSpec& model, double value) { model.norm_eps = value; }},
    {"window", [](ModelSpec& model, double value) { model.sliding_window = static_cast<int64_t>(value); }},
    {"experts", [](ModelSpec& model, double value) { model.num_experts = static_cast<int64_t>(value); }},
    {"top", [](ModelSpec& model, double value) { model.experts_per_token = static_cast<int64_t>(value); }}};

void apply_trait(ModelSpec& model, std::string_view trait) {
  const auto [name, value] = split_setting(trait);
  const auto found = k_traits.find(name);
  CHECK(found != k_traits.end());
  found->second(model, value.empty() ? 0 : parse_figure(value));
}

KnownModel parse_model(const TsvRow& row) {
  return {parse_model_row(row), parse_count(row.at("parameters")), row.at("source")};
}

const NamedRows<KnownModel>& loaded_models() {
  static const NamedRows<KnownModel> loaded(embedded::models_tsv, parse_model, "key", "aliases");
  return loaded;
}

// Fine-tunes and conversions have the shape of their base: "Llama-2-7b-chat-hf", "Qwen2.5-7B-Instruct".
bool strip_variant(std::string& folded) {
  for (const std::string_view variant : {"instruct", "base", "chat", "hf"}) {
    if (!folded.ends_with(variant)) continue;
    folded.resize(folded.size() - variant.size());
    return true;
  }
  return false;
}

}  // namespace

ModelSpec parse_model_row(const TsvRow& row) {
  ModelSpec model;
  model.name = row.at("key");
  model.full_name = row.at("full_name");
  model.num_layers = parse_count(row.at("layers"));
  model.hidden_size = parse_count(row.at("hidden"));
  model.num_attention_heads = parse_count(row.at("heads"));
  model.num_key_value_heads = parse_count(row.at("kv_heads"));
  model.head_dim = parse_count(row.at("head_dim"));
  model.ffn_hidden_size = parse_count(row.at("ffn"));
  model.vocab_size = parse_count(row.at("vocab"));
  model.max_position_embeddings = parse_count(row.at("max_position"));
  for (const std::string& trait : split_words(row.at("traits"), ' ')) apply_trait(model, trait);
  return model;
}

const std::vector<KnownModel>& model_catalogue() { return loaded_models().rows(); }

std::optional<ModelSpec> find_model(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string folded = fold_name(name);
  do {
    if (const KnownModel* found = loaded_models().find(folded)) return found->spec;
  } while (strip_variant(folded));
  return std::nullopt;
}

}  // namespace tprimat
