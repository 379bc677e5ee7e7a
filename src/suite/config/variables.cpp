#include "config/variables.h"

#include <algorithm>
#include <cctype>

#include "config/values.h"
#include "spec/names.h"

namespace tprimat::suite {
namespace {

std::string upper_path(const std::string& path) {
  std::string name = path;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
  return name;
}

std::vector<std::string> platform_spellings(const std::string& platform) {
  std::vector<std::string> spellings;
  for (const auto& [value, name] : EnumNames<Platform>::values)
    if (enum_name(value) == platform) spellings.emplace_back(name);
  return spellings;
}

class VariableList {
 public:
  std::vector<ConfigVariable> take() && { return std::move(variables_); }

  // `spelled` is the path as the variable spells it, `path` the canonical one.
  void add(const KeySchema& schema, const YamlNode* tree, const std::string& spelled, const std::string& path) {
    switch (schema.kind) {
      case KeySchema::Kind::value: variables_.push_back({"CONFIG_" + upper_path(spelled), path}); return;
      case KeySchema::Kind::section: return add_section(schema, tree, spelled, path);
      case KeySchema::Kind::named: return add_named(schema, tree, spelled, path);
    }
  }

 private:
  void add_section(const KeySchema& schema, const YamlNode* tree, const std::string& spelled, const std::string& path) {
    for (const auto& [key, below] : schema.keys) {
      const YamlNode* node = tree == nullptr ? nullptr : tree->find(key);
      add(below, node, join_path(spelled, key), join_path(path, key));
      for (const KeyAlias& alias : schema.aliases)
        if (alias.key == key) add(below, node, join_path(spelled, std::string(alias.alias)), join_path(path, key));
    }
  }

  void add_named(const KeySchema& schema, const YamlNode* tree, const std::string& spelled, const std::string& path) {
    std::vector<std::string> names = accepted_keys(schema);
    if (names.empty() && tree != nullptr)
      for (const YamlEntry& entry : tree->entries) names.push_back(entry.key);
    for (const std::string& name : names) {
      const YamlNode* node = tree == nullptr ? nullptr : tree->find(name);
      const bool platform = schema.names == NameKind::platform;
      for (const std::string& spelling : platform ? platform_spellings(name) : std::vector{name})
        add(schema.each[0], node, join_path(spelled, spelling), join_path(path, name));
    }
  }

  std::vector<ConfigVariable> variables_;
};

}  // namespace

const std::vector<ConfigVariable>& named_variables() {
  static const std::vector<ConfigVariable> variables = {
      {"FRAMEWORKS", "experiment.frameworks"},
      {"PARALLEL", "experiment.methodology"},
      {"TRAIN_ITERS", "training.duration.max_steps"},
      {"CONFIG_OUTPUT_DIR", "benchmarking.output.directory"},
      {"CONFIG_AMD_NUM_GPUS", "hardware.platforms.amd.num_gpus"},
      {"CONFIG_NVD_NUM_GPUS", "hardware.platforms.nvd.num_gpus"},
      {"PRIMUS_PATH", "paths.primus.installation"},
      {"MEGATRON_PATH", "paths.megatron.installation"},
      {"MEGATRON_DEEPSPEED_PATH", "paths.megatron_deepspeed.installation"}};
  return variables;
}

std::vector<ConfigVariable> list_path_variables(const KeySchema& schema, const YamlNode& tree) {
  VariableList list;
  list.add(schema, &tree, "", "");
  return std::move(list).take();
}

std::string variable_name(const std::string& path) {
  for (const ConfigVariable& variable : named_variables())
    if (variable.path == path && variable.name.starts_with("CONFIG_")) return variable.name;
  return "CONFIG_" + upper_path(path);
}

}  // namespace tprimat::suite
