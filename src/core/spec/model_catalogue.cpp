#include "spec/model_catalogue.h"

#include <map>

#include "base/check.h"
#include "spec/tsv_rows.h"

namespace tprimat {
namespace embedded {
extern const std::string_view models_tsv;
extern const std::string_view counted_models_tsv;
}  // namespace embedded

namespace {

int64_t parse_count(std::string_view text) { return static_cast<int64_t>(parse_figure(text)); }

template <class T>
using Members = std::map<std::string_view, T>;

// Words of the `traits` column. Those with a value: "top=2".
const Members<bool ModelSpec::*> k_flags = {{"tied", &ModelSpec::tied_embeddings},
                                            {"qkv_bias", &ModelSpec::qkv_bias},
                                            {"linear_bias", &ModelSpec::linear_bias},
                                            {"qk_norm", &ModelSpec::qk_norm}};
const Members<std::optional<bool> ModelSpec::*> k_optional_flags = {
    {"sinks", &ModelSpec::attention_sinks}, {"shared_prediction", &ModelSpec::shared_prediction}};
const Members<double ModelSpec::*> k_constants = {{"theta", &ModelSpec::rope_theta}, {"eps", &ModelSpec::norm_eps}};
const Members<std::optional<int64_t> ModelSpec::*> k_optional_sizes = {
    {"window", &ModelSpec::sliding_window},
    {"full_layers", &ModelSpec::full_attention_layers},
    {"prediction", &ModelSpec::prediction_layers}};
const Members<int64_t Experts::*> k_expert_sizes = {{"experts", &Experts::count},
                                                    {"top", &Experts::per_token},
                                                    {"expert_ffn", &Experts::ffn_hidden_size},
                                                    {"shared_ffn", &Experts::shared_ffn_hidden_size},
                                                    {"dense_layers", &Experts::first_dense_layers},
                                                    {"interval", &Experts::layer_interval},
                                                    {"groups", &Experts::groups},
                                                    {"groups_top", &Experts::groups_per_token}};
const Members<double Experts::*> k_expert_figures = {{"scale", &Experts::weight_scale},
                                                     {"aux", &Experts::aux_loss_coefficient},
                                                     {"zloss", &Experts::z_loss_coefficient}};
const Members<int64_t LatentAttention::*> k_latent_sizes = {{"query_rank", &LatentAttention::query_rank},
                                                            {"key_value_rank", &LatentAttention::key_value_rank},
                                                            {"rope_head_dim", &LatentAttention::rope_head_dim},
                                                            {"value_head_dim", &LatentAttention::value_head_dim}};
const Members<int64_t MambaMixers::*> k_mamba_sizes = {
    {"mamba_layers", &MambaMixers::layers},     {"attention_layers", &MambaMixers::attention_layers},
    {"mamba_width", &MambaMixers::inner_width}, {"mamba_heads", &MambaMixers::heads},
    {"mamba_groups", &MambaMixers::groups},     {"mamba_state", &MambaMixers::state},
    {"mamba_chunk", &MambaMixers::chunk}};

template <class Part>
Part& part_of(std::optional<Part>& part) {
  return part ? *part : part.emplace();
}

// A part that a trait belongs to is made with its first trait. False where `members` lacks the name.
template <class Part, class Value>
bool set_member(std::optional<Part>& part, const Members<Value Part::*>& members, std::string_view name, double value) {
  const auto found = members.find(name);
  if (found == members.end()) return false;
  part_of(part).*found->second = static_cast<Value>(value);
  return true;
}

template <class Value>
bool set_member(ModelSpec& model, const Members<Value ModelSpec::*>& members, std::string_view name, double value) {
  const auto found = members.find(name);
  if (found == members.end()) return false;
  if constexpr (requires { typename Value::value_type; })
    model.*found->second = static_cast<typename Value::value_type>(value);
  else
    model.*found->second = static_cast<Value>(value);
  return true;
}

using SetTrait = void (*)(ModelSpec& model, std::string_view value);
const std::map<std::string_view, SetTrait> k_other_traits = {
    {"layer_norm", [](ModelSpec& model, std::string_view) { model.norm = NormKind::layer; }},
    {"gelu", [](ModelSpec& model, std::string_view) { model.mlp = MlpKind::gelu; }},
    {"learned_positions", [](ModelSpec& model, std::string_view) { model.position = PositionKind::learned; }},
    {"latent_expert",
     [](ModelSpec& model, std::string_view value) { part_of(model.experts).latent_size = parse_count(value); }},
    {"shared_gate", [](ModelSpec& model, std::string_view) { part_of(model.experts).shared_gate = true; }},
    {"sigmoid", [](ModelSpec& model, std::string_view) { part_of(model.experts).router_score = RouterScore::sigmoid; }},
    {"raw_weights", [](ModelSpec& model, std::string_view) { part_of(model.experts).normalize_weights = false; }},
    {"capacity",
     [](ModelSpec& model, std::string_view value) { part_of(model.experts).capacity_factor = parse_figure(value); }},
    {"balance", [](ModelSpec& model, std::string_view value) {
       const auto kind = parse_enum<LoadBalancing>(value);
       CHECK(kind);
       part_of(model.experts).balancing = *kind;
     }}};

bool set_number(ModelSpec& model, std::string_view name, double value) {
  return set_member(model, k_flags, name, 1) || set_member(model, k_optional_flags, name, 1) ||
         set_member(model, k_constants, name, value) || set_member(model, k_optional_sizes, name, value) ||
         set_member(model.experts, k_expert_sizes, name, value) ||
         set_member(model.experts, k_expert_figures, name, value) ||
         set_member(model.latent_attention, k_latent_sizes, name, value) ||
         set_member(model.mamba, k_mamba_sizes, name, value);
}

void apply_trait(ModelSpec& model, std::string_view trait) {
  const auto [name, value] = split_setting(trait);
  if (const auto other = k_other_traits.find(name); other != k_other_traits.end()) return other->second(model, value);
  CHECK(set_number(model, name, value.empty() ? 0 : parse_figure(value)));
}

ModelSpec parse_shape(const TsvRow& row) {
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
  if (model.experts && model.experts->ffn_hidden_size == 0) model.experts->ffn_hidden_size = model.ffn_hidden_size;
  return model;
}

std::optional<int64_t> count_in(const TsvRow& row, std::string_view column) {
  const auto found = row.find(column);
  return found == row.end() || found->second.empty() ? std::nullopt : std::optional(parse_count(found->second));
}

KnownModel parse_model(const TsvRow& row) {
  return {parse_shape(row), count_in(row, "parameters"), count_in(row, "active"), row.at("source")};
}

const NamedRows<KnownModel>& loaded_models() {
  static const NamedRows<KnownModel> loaded(embedded::models_tsv, parse_model, "key", "aliases");
  return loaded;
}

const NamedRows<KnownModel>& loaded_counted() {
  static const NamedRows<KnownModel> loaded(embedded::counted_models_tsv, parse_model, "key", "aliases");
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

const std::vector<KnownModel>& model_catalogue() { return loaded_models().rows(); }

const std::vector<KnownModel>& counted_models() { return loaded_counted().rows(); }

std::optional<ModelSpec> find_model(std::string_view name) {
  if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string folded = fold_name(name);
  do {
    if (const KnownModel* found = loaded_models().find(folded)) return found->spec;
  } while (strip_variant(folded));
  return std::nullopt;
}

std::optional<KnownModel> find_counted_model(std::string_view name) {
  if (const auto known = find_model(name)) return KnownModel{*known, {}, {}, {}};
  const KnownModel* found = loaded_counted().find(name);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

}  // namespace tprimat
