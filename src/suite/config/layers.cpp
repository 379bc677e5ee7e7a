#include "config/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/check_tree.h"
#include "config/load.h"
#include "config/methodology.h"
#include "config/older_keys.h"
#include "config/older_variables.h"
#include "config/values.h"
#include "config/variables.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {

namespace embedded {
extern const std::string_view default_yaml;
}

namespace {

const Origin k_default_origin{Provenance::built_in};
constexpr const char* k_variable_hint =
    "use CONFIG_<SECTION>_<KEY>, such as CONFIG_TRAINING_DATA_SEQ_LENGTH, or CONFIG_OUTPUT_DIR, CONFIG_AMD_NUM_GPUS, "
    "CONFIG_NVD_NUM_GPUS; unset it if it belongs to another program";

YamlNode read_default() { return parse_yaml(default_config_text(), k_default_origin).root; }

struct FileLayer {
  YamlNode tree;
  bool is_older = false;  // has keys of the older scripts
};

FileLayer read_file_layer(const ConfigLayers& layers, Diagnosis& diagnosis) {
  YamlDocument document = parse_yaml(layers.file_text, layers.file_name);
  for (const Problem& duplicate : document.duplicates) diagnosis.add_error(duplicate);
  if (document.root.kind == YamlNode::Kind::null)
    throw Error(
        Problem{"the file is empty", layers.file_name, "write a starting point with tprimat config init --force"});
  if (!document.root.is_map())
    throw Error(Problem{"is not a configuration: it must consist of sections such as  models:  and  training:",
                        layers.file_name, "tprimat config show prints an example"});
  canonicalize_keys(config_schema(), document.root, diagnosis);
  const bool is_older = translate_older_keys(document.root, layers.file_name, diagnosis);
  return {std::move(document.root), is_older};
}

// `over` onto the built-in default.
void merge_file(const KeySchema& schema, YamlNode& base, const YamlNode& over) {
  base.origin = over.origin;
  for (const YamlEntry& entry : over.entries) {
    const KeySchema* below = schema.find(entry.key);
    YamlNode* found = base.find(entry.key);
    const bool section = below != nullptr && below->kind == KeySchema::Kind::section;
    if (section && found != nullptr && found->is_map() && entry.value.is_map())
      merge_file(*below, *found, entry.value);
    else if (found != nullptr)
      *found = entry.value;
    else
      base.entries.push_back(entry);
  }
}

// An override changes the keys that it names and no others.
void merge_override(YamlNode& base, const YamlNode& over) {
  if (!over.is_map() || !base.is_map()) {
    base = over;
    return;
  }
  for (const YamlEntry& entry : over.entries) merge_override(base[entry.key], entry.value);
}

const KeySchema& schema_at(const std::string& path) {
  const KeySchema* schema = &config_schema();
  for (const std::string& part : split_key_path(path)) schema = step_into(*schema, part);
  return *schema;
}

// Text is taken literally; for a list or a section, [..] and {..} are parsed as YAML.
YamlNode read_override(const KeySchema& schema, const std::string& text, const Origin& origin, Diagnosis& diagnosis) {
  const bool structured = schema.kind != KeySchema::Kind::value || schema.type == ValueType::text_list;
  if (!structured || text.empty() || (text[0] != '{' && text[0] != '[')) {
    YamlNode scalar = yaml_scalar(text, origin);
    canonicalize_keys(schema, scalar, diagnosis);
    return scalar;
  }
  YamlDocument document = parse_yaml(text, origin);
  for (const Problem& duplicate : document.duplicates) diagnosis.add_error(duplicate);
  canonicalize_keys(schema, document.root, diagnosis);
  return std::move(document.root);
}

void assign(YamlNode& tree, const std::string& path, const YamlNode& value) {
  YamlNode* node = &tree;
  for (const std::string& part : split_key_path(path)) {
    YamlNode& below = (*node)[part];
    if (!below.origin.known()) below.origin = value.origin;
    node = &below;
  }
  merge_override(*node, value);
}

void apply_overrides(YamlNode& tree, const ConfigLayers& layers, Diagnosis& diagnosis);

class EnvironmentLayer {
 public:
  EnvironmentLayer(YamlNode& tree, const ConfigLayers& layers, Diagnosis& diagnosis)
      : tree_(tree), layers_(layers), environment_(layers.environment), diagnosis_(diagnosis) {}

  // Variables with their own names are for people, CONFIG_<UPPER_PATH> is for scripts: the former win.
  void apply() {
    apply_older(older_variables());
    const std::vector<ConfigVariable> known = list_path_variables(config_schema(), tree_);
    std::vector<std::string> others;
    for (const auto& [name, value] : environment_)
      if (name.starts_with("CONFIG_") && !value.empty() && !is_named(name) && !is_in(older_variables(), name) &&
          !apply_path(name, value, known))
        others.push_back(name);
    for (const ConfigVariable& variable : named_variables())
      if (const std::string* value = find_variable(environment_, variable.name)) {
        refuse_other_spelling(variable, *value);
        apply_named(variable, *value);
      }
    const YamlNode final_tree = with_overrides();
    const YamlNode* methodology = find_path(final_tree, "experiment.methodology");
    const std::string strategy = methodology == nullptr ? "" : methodology->scalar;
    const std::vector<ConfigVariable> older = older_variables_of(tree_, strategy);
    refuse_other_layouts(older, strategy, final_tree);
    apply_older(older);
    for (const std::string& name : others)
      if (!is_in(older, name)) refuse_unknown(name, known);
  }

 private:
  // The overrides are stronger than the variables, but choose the strategy whose layout these set.
  YamlNode with_overrides() const {
    YamlNode tree = tree_;
    Diagnosis reported_later;
    apply_overrides(tree, layers_, reported_later);
    return tree;
  }

  // Why trainings run another layout than that of `strategy`; "" if none does.
  std::string explain_other_layouts(const std::string& strategy, const YamlNode& tree) const {
    if (layers_.has_several_strategies) return "--strategy names several";
    const YamlNode* frameworks = tree.find("frameworks");
    if (frameworks == nullptr || layers_.strategy) return "";
    for (const YamlEntry& framework : frameworks->entries)
      if (const YamlNode* own = framework.value.find("strategy");
          own != nullptr && own->is_scalar() && own->scalar != strategy)
        return fmt::format("frameworks.{}.strategy is '{}'", framework.key, own->scalar);
    return "";
  }

  // A layout that is set but not run would go unnoticed.
  void refuse_other_layouts(const std::vector<ConfigVariable>& older, const std::string& strategy,
                            const YamlNode& tree) {
    std::vector<std::string> names;
    for (const ConfigVariable& variable : older)
      if (variable.path.starts_with("parallelism.") && find_variable(environment_, variable.name) != nullptr)
        names.push_back(variable.name);
    const std::string why = names.empty() ? "" : explain_other_layouts(strategy, tree);
    if (why.empty()) return;
    diagnosis_.add_error({fmt::format("sets the layout of the strategy '{}' alone, but {}", strategy, why),
                          "environment " + join(names, ", "),
                          "unset it and state each layout, as in --set parallelism.STRATEGY.MODEL.PLATFORM.TP=2"});
  }

  // CONFIG_NVD_NUM_GPUS and CONFIG_NVIDIA_NUM_GPUS are one setting.
  void refuse_other_spelling(const ConfigVariable& variable, const std::string& value) {
    const YamlNode* present = find_path(tree_, variable.path);
    if (present == nullptr) return;
    for (const ConfigVariable& other : named_variables())
      if (other.path == variable.path && other.name != variable.name && present->origin.place == other.name)
        refuse_second(variable.name, variable.path, value);
  }

  void apply_older(const std::vector<ConfigVariable>& variables) {
    for (const auto& [name, path] : variables) {
      const std::string* value = find_variable(environment_, name);
      if (value == nullptr) continue;
      if (path.empty()) {
        diagnosis_.add_warning({"has no effect: no key corresponds to it", "environment " + name, ""});
        continue;
      }
      refuse_second(name, path, *value);
      set(name, path, *value);
    }
  }

  static bool is_in(const std::vector<ConfigVariable>& variables, const std::string& name) {
    return std::ranges::find(variables, name, &ConfigVariable::name) != variables.end();
  }

  static bool is_named(const std::string& name) { return is_in(named_variables(), name); }

  void apply_named(const ConfigVariable& variable, const std::string& value) {
    const std::string platform_prefix = "hardware.platforms.";
    const std::string platform = variable.path.substr(0, variable.path.rfind('.'));
    if (!variable.path.starts_with(platform_prefix) || find_path(tree_, platform) != nullptr)
      return set(variable.name, variable.path, value);
    diagnosis_.add_warning(
        {fmt::format("has no effect: the configuration has no platform {}", platform.substr(platform_prefix.size())),
         "environment " + variable.name, ""});
  }

  // Whether the variable is one of `known`.
  bool apply_path(const std::string& name, const std::string& value, const std::vector<ConfigVariable>& known) {
    std::vector<std::string> paths;
    for (const ConfigVariable& variable : known)
      if (variable.name == name && std::find(paths.begin(), paths.end(), variable.path) == paths.end())
        paths.push_back(variable.path);
    if (paths.size() == 1) {
      refuse_second(name, paths[0], value);
      set(name, paths[0], value);
    }
    if (paths.size() > 1)
      diagnosis_.add_error({fmt::format("is ambiguous: it may mean {}", join(paths, " or ")), "environment " + name,
                            "use --set instead"});
    return !paths.empty();
  }

  void refuse_unknown(const std::string& name, const std::vector<ConfigVariable>& known) {
    std::vector<std::string> names;
    for (const auto* list : {&known, &named_variables(), &older_variables()})
      for (const ConfigVariable& variable : *list) names.push_back(variable.name);
    const std::string meant = nearest_word(name, names);
    diagnosis_.add_error({"matches no configuration key", "environment " + name,
                          meant.empty() ? k_variable_hint : fmt::format("did you mean {}?", meant)});
  }

  void refuse_second(const std::string& name, const std::string& path, const std::string& value) {
    const YamlNode* present = find_path(tree_, path);
    if (present == nullptr || present->origin.provenance != Provenance::environment || present->scalar == value) return;
    diagnosis_.add_error(
        {fmt::format("sets {} to '{}', but {} sets it to '{}'", path, value, present->origin.place, present->scalar),
         "environment " + name, "unset one of them"});
  }

  void set(const std::string& name, const std::string& path, const std::string& value) {
    assign(tree_, path, read_override(schema_at(path), value, {Provenance::environment, name}, diagnosis_));
  }

  YamlNode& tree_;
  const ConfigLayers& layers_;
  const Environment& environment_;
  Diagnosis& diagnosis_;
};

// Variables that keys of AMD's platform become. What the caller exports stands where the configuration says nothing,
// and then decides over what is recommended for AMD.
constexpr std::pair<const char*, const char*> k_runtime_variables[] = {
    {"HSA_NO_SCRATCH_RECLAIM", "platform_optimizations.amd.hsa_no_scratch_reclaim"},
    {"HSA_ENABLE_SDMA", "platform_optimizations.amd.hsa_enable_sdma"},
    {"PYTORCH_ALLOC_CONF", "platform_optimizations.amd.cuda_alloc_conf"},  // in the order in which PyTorch reads them
    {"PYTORCH_CUDA_ALLOC_CONF", "platform_optimizations.amd.cuda_alloc_conf"},
    {"PYTORCH_HIP_ALLOC_CONF", "platform_optimizations.amd.cuda_alloc_conf"}};

void keep_runtime_variables(YamlNode& tree, const Environment& environment) {
  if (find_path(tree, "hardware.platforms.amd") == nullptr) return;
  for (const auto& [name, path] : k_runtime_variables) {
    const std::string* value = find_variable(environment, name);
    const bool is_flag = schema_at(path).type == ValueType::boolean;
    if (value == nullptr || find_path(tree, path) != nullptr || (is_flag && *value != "0" && *value != "1")) continue;
    const std::string text = is_flag ? (*value == "1" ? "true" : "false") : *value;
    assign(tree, path, yaml_scalar(text, {Provenance::environment, name}));
  }
}

// "a.imagee", where "a" exists, is not a new label but a misspelt key.
void refuse_key_of_label(const KeySchema& schema, const YamlNode& labels, const std::string& part,
                         const std::string& where) {
  const size_t dot = part.rfind('.');
  if (dot == std::string::npos || labels.find(part.substr(0, dot)) == nullptr) return;
  const std::string key = part.substr(dot + 1);
  throw Error(Problem{fmt::format("unknown key '{}' in the installation '{}'", key, part.substr(0, dot)), where,
                      suggest_key(key, schema.each[0])});
}

// An unknown name that resembles an existing one is a typo, not a new entry.
void refuse_near_names(const YamlNode& tree, const std::string& path, const std::string& where) {
  const KeySchema* schema = &config_schema();
  const YamlNode* node = &tree;
  for (const std::string& part : split_key_path(path)) {
    const YamlNode* below = node == nullptr ? nullptr : node->find(part);
    if (schema->names == NameKind::label && node != nullptr && below == nullptr)
      refuse_key_of_label(*schema, *node, part, where);
    if (schema->kind == KeySchema::Kind::named && schema->names == NameKind::any && node != nullptr &&
        below == nullptr) {
      std::vector<std::string> names;
      for (const YamlEntry& entry : node->entries) names.push_back(entry.key);
      if (const std::string meant = suggest_word(part, names); !meant.empty())
        throw Error(Problem{fmt::format("there is no '{}' here", part), where, meant});
    }
    node = below;
    schema = step_into(*schema, part);
  }
}

// Sets one key; `origin` is what errors name.
void apply_value(YamlNode& tree, const std::string& key, const std::string& text, const Origin& origin,
                 Diagnosis& diagnosis) {
  try {
    const std::string path = canonical_path(key, origin.text());
    const YamlNode value = read_override(schema_at(path), text, origin, diagnosis);
    if (!value.is_map() || text[0] != '{') refuse_near_names(tree, path, origin.text());
    assign(tree, path, value);
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) diagnosis.add_error(problem);
  }
}

void apply_set(YamlNode& tree, const std::string& text, Diagnosis& diagnosis) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    diagnosis.add_error(
        {fmt::format("'{}' must be KEY=VALUE", text), "--set", "for example --set training.data.seq_length=4096"});
    return;
  }
  const std::string key = text.substr(0, equals);
  apply_value(tree, key, text.substr(equals + 1), {Provenance::option, "--set " + key}, diagnosis);
}

void apply_overrides(YamlNode& tree, const ConfigLayers& layers, Diagnosis& diagnosis) {
  for (const std::string& text : layers.overrides) apply_set(tree, text, diagnosis);
  if (layers.strategy)
    apply_value(tree, "experiment.methodology", *layers.strategy, {Provenance::option, "--strategy"}, diagnosis);
}

}  // namespace

std::string_view default_config_text() { return embedded::default_yaml; }

std::string canonical_path(const std::string& path, const std::string& where) {
  const KeySchema* schema = &config_schema();
  std::string canonical;
  for (const std::string& part : split_key_path(path)) {
    const std::string key = canonical_key(*schema, part);
    const std::vector<std::string> accepted = accepted_keys(*schema);
    const KeySchema* below = step_into(*schema, key);
    const bool known = accepted.empty() || std::find(accepted.begin(), accepted.end(), key) != accepted.end();
    if (below == nullptr || !known || part.empty())
      throw Error(Problem{fmt::format("unknown key '{}'{}", part, canonical.empty() ? "" : " in " + canonical), where,
                          suggest_key(part, *schema)});
    canonical = join_path(canonical, key);
    schema = below;
  }
  return canonical;
}

YamlNode merge_layers(const ConfigLayers& layers, Diagnosis& diagnosis) {
  YamlNode tree = read_default();
  canonicalize_keys(config_schema(), tree, diagnosis);
  std::optional<Problem> chosen_methodology;
  if (layers.has_file) {
    const FileLayer file = read_file_layer(layers, diagnosis);
    merge_file(config_schema(), tree, file.tree);
    chosen_methodology = choose_methodology(tree, file.is_older);
  }
  EnvironmentLayer(tree, layers, diagnosis).apply();
  apply_overrides(tree, layers, diagnosis);
  if (chosen_methodology && is_methodology_chosen(tree)) diagnosis.add_warning(*chosen_methodology);
  keep_runtime_variables(tree, layers.environment);
  expand_variables(tree, layers.environment, diagnosis);
  return tree;
}

}  // namespace tprimat::suite
