#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/draft.h"
#include "config/values.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_parameter_tolerance = 0.02;
constexpr std::string_view k_required[] = {
    "num_layers",          "hidden_size", "ffn_hidden_size",        "num_attention_heads",
    "num_key_value_heads", "vocab_size",  "max_position_embeddings"};

std::optional<ModelSpec> look_up(const raw::Model& model) {
  for (const raw::Text* spelling : {&model.name, &model.full_name, &model.tokenizer_path})
    if (*spelling)
      if (auto known = find_model(**spelling)) return known;
  return std::nullopt;
}

constexpr const char* k_rope_example =
    "for example  rope_scaling: {type: llama3, factor: 8, original_max_position_embeddings: 8192}";

constexpr const char* k_latent_example =
    "for example  latent_attention: {query_rank: 1536, key_value_rank: 512, rope_head_dim: 64, value_head_dim: 128}";
constexpr const char* k_experts_example = "for example  experts: {count: 8, per_token: 2}";

bool is_of_type(std::string_view key, RopeScalingKind type) {
  if (key == "type" || key == "factor") return true;
  if (key == "original_max_position_embeddings") return type != RopeScalingKind::linear;
  return type == (key.starts_with("beta") ? RopeScalingKind::yarn : RopeScalingKind::llama3);
}

bool is_name(std::string_view key) { return key == "name" || key == "full_name"; }

template <class T>
std::string print_value(const T& value) {
  if constexpr (NamedEnum<T>)
    return std::string(enum_name(value));
  else
    return fmt::format("{}", value);
}

class ModelResolver {
 public:
  ModelResolver(Draft& draft, const std::string& key, raw::Model& model)
      : draft_(draft), path_("models." + key), key_(key), model_(model), known_(look_up(model)) {
    if (known_) spec_ = *known_;
  }

  void resolve() {
    take_common("dataset_path", model_.dataset_path, draft_.raw.training.data.dataset_path);
    take_common("tokenizer_path", model_.tokenizer_path, draft_.raw.training.data.tokenizer_path);
    take_stated();
    fill_head_dim();
    resolve_rope_scaling();
    resolve_latent_attention();
    resolve_experts();
    const bool complete = check_complete();
    name_spec();
    if (complete) check_shape();
    if (complete) check_sparse_parts();
    fill_absent();
    if (complete && draft_.is_sound(path_)) check_parameters();
    add_entry();
  }

 private:
  // After the catalogue was asked: the tokenizer of all models names none of them.
  void take_common(const std::string& key, raw::Text& own, const raw::Text& common) {
    if (common && !common->empty())
      take_or(draft_, own, join_path(path_, key), *common, derived_by("training.data." + key));
  }

  void take_stated() {
    for_each_pair(model_, spec_, [&](std::string_view key, auto& stated, auto& value) {
      if (is_name(key) || !stated) return;
      if (known_ && value != std::decay_t<decltype(value)>(*stated) && !is_absent(*stated, value))
        warn_contradiction(key, *stated, value);
      value = *stated;
    });
  }

  // Stated as 0, where the catalogue has none: "prediction_layers: 0".
  template <class T, class Value>
  static bool is_absent(const T& stated, const Value& catalogued) {
    if constexpr (std::is_same_v<Value, std::optional<int64_t>>)
      return stated == 0 && !catalogued;
    else
      return false;
  }

  template <class T, class Value>
  void warn_contradiction(std::string_view key, const T& stated, const Value& catalogued) {
    std::string has = "none";
    if constexpr (std::is_same_v<Value, T>)
      has = print_value(catalogued);
    else if (catalogued)
      has = print_value(*catalogued);
    const std::string path = join_path(path_, std::string(key));
    draft_.warn(path,
                fmt::format("{} is {}, but the model catalogue has {} for {}", path, print_value(stated), has,
                            known_->full_name),
                "tprimat uses the stated value; rename the model if it is a different one");
  }

  void fill_head_dim() {
    if (spec_.head_dim != 0 || spec_.hidden_size == 0 || spec_.num_attention_heads == 0) return;
    if (spec_.hidden_size % spec_.num_attention_heads != 0) return;
    spec_.head_dim = spec_.hidden_size / spec_.num_attention_heads;
    draft_.derived[path_ + ".head_dim"] = derived_by("hidden_size / num_attention_heads");
  }

  void resolve_rope_scaling() {
    raw::RopeScalingSection& from = model_.rope_scaling;
    const std::string path = path_ + ".rope_scaling";
    if (find_path(draft_.tree, path) == nullptr || !draft_.is_sound(path)) return;
    std::vector<std::string> missing;
    if (!from.type) missing.emplace_back("type");
    if (!from.factor) missing.emplace_back("factor");
    if (from.type && *from.type != RopeScalingKind::linear && !from.original_max_position_embeddings)
      missing.emplace_back("original_max_position_embeddings");
    if (!missing.empty())
      return draft_.fail(path, fmt::format("{} lacks {}", path, join(missing, ", ")), k_rope_example);
    take_rope_scaling(path);
  }

  // Keys that the type does not use get no default and cause a warning.
  void take_rope_scaling(const std::string& path) {
    RopeScaling scaling;
    const RopeScalingKind type = *model_.rope_scaling.type;
    for_each_pair(model_.rope_scaling, scaling, [&](std::string_view key, auto& stated, auto& value) {
      const std::string place = join_path(path, std::string(key));
      if (is_of_type(key, type)) {
        value = take_or(draft_, stated, place, value);
      } else if (stated) {
        draft_.warn(place, fmt::format("{} has no effect with type {}", place, enum_name(type)));
      }
    });
    spec_.rope_scaling = scaling;
  }

  bool states(const char* section) const {
    const std::string path = join_path(path_, section);
    return find_path(draft_.tree, path) != nullptr && draft_.is_sound(path);
  }

  // What the file states replaces what the catalogue knows; the section is then shown in full.
  template <class Section, class Part>
  void take_part(const char* name, Section& section, std::optional<Part>& part, Part from) {
    const std::string path = join_path(path_, name);
    const Origin origin = part ? derived_by("model catalogue: " + known_->full_name) : Origin{Provenance::assumed};
    for_each_pair(section, from, [&](std::string_view key, auto& stated, auto& value) {
      if (stated) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>)
          if (part && value != *stated) warn_contradiction(join_path(name, std::string(key)), *stated, value);
        value = std::decay_t<decltype(value)>(*stated);
        return;
      }
      stated = value;
      draft_.derived.try_emplace(join_path(path, std::string(key)), origin);
    });
    part = from;
  }

  bool require_parts(const char* name, const std::vector<std::string>& missing, const char* example) {
    if (missing.empty()) return true;
    const std::string path = join_path(path_, name);
    draft_.fail(path, fmt::format("{} lacks {}", path, join(missing, ", ")), example);
    return false;
  }

  void resolve_latent_attention() {
    raw::LatentAttentionSection& from = model_.latent_attention;
    if (!spec_.latent_attention && !states("latent_attention")) return;
    std::vector<std::string> missing;
    if (!spec_.latent_attention) {
      if (!from.key_value_rank) missing.emplace_back("key_value_rank");
      if (!from.rope_head_dim) missing.emplace_back("rope_head_dim");
      if (!from.value_head_dim) missing.emplace_back("value_head_dim");
    }
    if (require_parts("latent_attention", missing, k_latent_example))
      take_part("latent_attention", from, spec_.latent_attention, spec_.latent_attention.value_or(LatentAttention()));
  }

  // The catalogue's coefficient belongs to the catalogue's balancing loss.
  void drop_coefficient_of_other_balancing(Experts& experts) {
    const raw::ExpertsSection& from = model_.experts;
    if (!from.balancing || *from.balancing == experts.balancing || from.aux_loss_coefficient) return;
    if (*from.balancing != LoadBalancing::none && *from.balancing != LoadBalancing::bias) return;
    experts.aux_loss_coefficient = 0;
    draft_.derived.try_emplace(path_ + ".experts.aux_loss_coefficient", derived_by("experts.balancing"));
  }

  void resolve_experts() {
    raw::ExpertsSection& from = model_.experts;
    if (!spec_.experts && !states("experts")) return;
    std::vector<std::string> missing;
    if (!spec_.experts) {
      if (!from.count) missing.emplace_back("count");
      if (!from.per_token) missing.emplace_back("per_token");
    }
    if (!require_parts("experts", missing, k_experts_example)) return;
    Experts experts = spec_.experts.value_or(Experts());
    if (experts.ffn_hidden_size == 0) experts.ffn_hidden_size = spec_.ffn_hidden_size;
    drop_coefficient_of_other_balancing(experts);
    take_part("experts", from, spec_.experts, experts);
  }

  // Values that contradict each other, so that one of them would be ignored.
  void check_sparse_parts() {
    const auto fail_if = [&](bool wrong, const char* key, const std::string& what, const char* hint) {
      const std::string path = join_path(path_, key);
      if (wrong && draft_.is_sound(path)) draft_.fail(path, fmt::format("{} {}", path, what), hint);
    };
    if (spec_.latent_attention) {
      fail_if(spec_.num_key_value_heads != spec_.num_attention_heads, "num_key_value_heads",
              fmt::format("is {}, but with latent_attention each of the {} query heads has its own keys and values",
                          spec_.num_key_value_heads, spec_.num_attention_heads),
              "set it to num_attention_heads");
      fail_if(spec_.position == PositionKind::learned, "position", "is learned, but latent_attention has a rotary part",
              "set it to rope");
    }
    fail_if(spec_.shared_prediction.value_or(false) && spec_.prediction_layers.value_or(0) == 0, "shared_prediction",
            "is true, but there are no layers that predict further tokens (MTP)", "state prediction_layers");
    if (!spec_.experts) return;
    const LoadBalancing balancing = spec_.experts->balancing;
    const double coefficient = spec_.experts->aux_loss_coefficient;
    const bool by_loss = balancing == LoadBalancing::aux_loss || balancing == LoadBalancing::sequence_aux_loss;
    fail_if(by_loss && coefficient == 0, "experts.aux_loss_coefficient",
            fmt::format("must be above 0, because balancing is {}", enum_name(balancing)),
            "state the coefficient, for example 0.01, or set balancing to none");
    fail_if(balancing == LoadBalancing::none && coefficient > 0, "experts.aux_loss_coefficient",
            fmt::format("is {}, but balancing is none, so the loss would be ignored", coefficient),
            "set balancing to aux_loss or sequence_aux_loss, or the coefficient to 0");
  }

  bool check_complete() {
    std::vector<std::string> missing;
    for_each_field<ModelSpec>([&](const auto& each) {
      using Member = std::decay_t<decltype(spec_.*each.member)>;
      if constexpr (std::is_same_v<Member, int64_t>)
        if (std::find(std::begin(k_required), std::end(k_required), each.key) != std::end(k_required) &&
            spec_.*each.member == 0)
          missing.emplace_back(each.key);
    });
    if (missing.empty() || !draft_.is_sound(path_)) return missing.empty();
    draft_.fail(path_, fmt::format("the shape of {} is incomplete: {} missing", path_, join(missing, ", ")),
                "state them, or use the name of a public model, such as llama3.1_8b");
    return false;
  }

  void name_spec() {
    spec_.name = key_;
    spec_.full_name = model_.full_name ? *model_.full_name : known_ ? known_->full_name : model_.name.value_or(key_);
  }

  void check_shape() {
    if (!draft_.is_sound(path_)) return;
    for (Problem& problem : check_model(spec_, origin_of(draft_.tree, path_))) {
      problem.what = path_ + ": " + problem.what;
      draft_.diagnosis.add_error(std::move(problem), path_);
    }
  }

  void fill_absent() {
    const Origin origin = known_ ? derived_by("model catalogue: " + known_->full_name) : Origin{Provenance::assumed};
    for_each_pair(model_, spec_, [&](std::string_view key, auto& stated, auto& value) {
      if (stated || is_name(key)) return;
      stated = value;
      draft_.derived.try_emplace(join_path(path_, std::string(key)), origin);
    });
    take_or(draft_, model_.full_name, path_ + ".full_name", spec_.full_name,
            known_ ? derived_by("model catalogue") : Origin{Provenance::assumed});
  }

  void check_parameters() {
    const double counted = static_cast<double>(count_parameters(spec_).total());
    const std::string path = path_ + ".num_parameters";
    const double stated = take_or(draft_, model_.num_parameters, path, counted, derived_by("counted from the shape"));
    if (std::fabs(stated - counted) <= k_parameter_tolerance * counted) return;
    draft_.warn(path, fmt::format("{} is {:.4g}, but the shape has {:.4g} parameters", path, stated, counted),
                "all figures use the shape; correct one of them");
  }

  void add_entry() {
    ModelEntry entry;
    entry.spec = spec_;
    entry.given_name = model_.name.value_or(key_);
    if (model_.dataset_path && !model_.dataset_path->empty()) entry.dataset = *model_.dataset_path;
    entry.initial_weights = model_.initial_weights.value_or("");
    entry.tokenizer_path = model_.tokenizer_path;
    entry.nemo_recipe = model_.nemo_recipe;
    entry.primus_config = model_.primus_config;
    draft_.experiment.models.push_back(std::move(entry));
  }

  Draft& draft_;
  std::string path_, key_;
  raw::Model& model_;
  std::optional<ModelSpec> known_;
  ModelSpec spec_;
};

}  // namespace

void resolve_models(Draft& draft) {
  if (draft.raw.models.entries.empty() && draft.is_sound("models"))
    draft.fail("models", "models must name at least one model", "for example  models: {llama: {name: llama3.1_8b}}");
  for (auto& [key, model] : draft.raw.models.entries) ModelResolver(draft, key, model).resolve();
}

}  // namespace tprimat::suite
