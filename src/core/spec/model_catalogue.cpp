#include "spec/model_catalogue.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "spec/model_row.h"
#include "spec/tsv_rows.h"

namespace tprimat {
namespace embedded {
extern const std::string_view models_tsv;
}

namespace {

int64_t parse_count(std::string_view text) { return static_cast<int64_t>(parse_figure(text)); }

void apply_figure(ModelSpec& model, std::string_view name, double value) {
  const auto whole = static_cast<int64_t>(value);
  if (name == "theta") {
    model.rope_theta = value;
  } else if (name == "eps") {
    model.norm_eps = value;
  } else if (name == "window") {
    model.sliding_window = whole;
  } else if (name == "experts") {
    model.num_experts = whole;
  } else {
    CHECK(name == "top");
    model.experts_per_token = whole;
  }
}

void apply_trait(ModelSpec& model, const std::string& trait) {
  if (const size_t equals = trait.find('='); equals != std::string::npos)
    return apply_figure(model, trait.substr(0, equals), parse_figure(trait.substr(equals + 1)));
  if (trait == "tied") {
    model.tied_embeddings = true;
  } else if (trait == "qkv_bias") {
    model.qkv_bias = true;
  } else if (trait == "linear_bias") {
    model.linear_bias = true;
  } else if (trait == "qk_norm") {
    model.qk_norm = true;
  } else if (trait == "layer_norm") {
    model.norm = NormKind::layer;
  } else if (trait == "gelu") {
    model.mlp = MlpKind::gelu;
  } else {
    CHECK(trait == "learned_positions");
    model.position = PositionKind::learned;
  }
}

KnownModel parse_model(const TsvRow& row) {
  return {parse_model_row(row), parse_count(row.at("parameters")), row.at("source")};
}

struct ModelCatalogue {
  std::vector<KnownModel> models;
  std::map<std::string, size_t> index_of_name;  // folded name
};

ModelCatalogue load_models() {
  ModelCatalogue catalogue;
  for (const TsvRow& row : parse_tsv_rows(embedded::models_tsv)) {
    const KnownModel& known = catalogue.models.emplace_back(parse_model(row));
    std::vector<std::string> names = split_words(row.at("aliases"), '|');
    names.push_back(known.spec.name);
    names.push_back(known.spec.full_name);
    for (const std::string& name : names) {
      const size_t index = catalogue.models.size() - 1;
      CHECK(catalogue.index_of_name.try_emplace(fold_name(name), index).first->second == index);
    }
  }
  return catalogue;
}

const ModelCatalogue& loaded_models() {
  static const ModelCatalogue loaded = load_models();
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

const std::vector<KnownModel>& model_catalogue() { return loaded_models().models; }

std::optional<ModelSpec> find_model(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string folded = fold_name(name);
  do {
    const auto found = loaded_models().index_of_name.find(folded);
    if (found != loaded_models().index_of_name.end()) return loaded_models().models[found->second].spec;
  } while (strip_variant(folded));
  return std::nullopt;
}

}  // namespace tprimat
