#include "config/variables.h"

#include <fmt/format.h>

#include <cctype>

#include "base/environment.h"
#include "config/values.h"
#include "spec/names.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

std::vector<std::string> platform_spellings(const std::string& platform) {
  std::vector<std::string> spellings;
  for (const auto& [value, name] : EnumNames<Platform>::values)
    if (enum_name(value) == platform) spellings.emplace_back(name);
  return spellings;
}

// CONFIG_AMD_NUM_GPUS, CONFIG_ROCM_NUM_GPUS, CONFIG_NVD_NUM_GPUS ...: the printed name of a platform first.
std::vector<ConfigVariable> with_gpu_counts(std::vector<ConfigVariable> variables) {
  for (const char* platform : {"amd", "nvd"})
    for (const std::string& spelling : platform_spellings(platform))
      variables.push_back({fmt::format("CONFIG_{}_NUM_GPUS", upper_path(spelling)),
                           fmt::format("hardware.platforms.{}.num_gpus", platform)});
  return variables;
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

constexpr int k_deepest_default = 8;  // ${A:-${B:-...}}

// Position of the brace that closes the one just before `at`; npos if there is none.
size_t find_closing_brace(std::string_view text, size_t at) {
  int open = 1;
  for (; at < text.size(); ++at) {
    if (text.substr(at, 2) == "${") ++open;
    if (text[at] == '}' && --open == 0) return at;
  }
  return std::string_view::npos;
}

// The problem of a reference, without its place.
struct Refusal {
  std::string what, hint;
};

class Expander {
 public:
  explicit Expander(const Environment& environment) : environment_(environment) {}

  // Throws Refusal.
  std::string expand(std::string_view text, int depth) const {
    if (depth > k_deepest_default) throw Refusal{"${...} is nested too deeply", ""};
    std::string out;
    for (;;) {
      const size_t start = text.find("${");
      out += text.substr(0, start);
      if (start == std::string_view::npos) return out;
      const size_t end = find_closing_brace(text, start + 2);
      if (end == std::string_view::npos) throw Refusal{"a ${ is not closed", "write ${NAME} or ${NAME:-default}"};
      out += look_up(text.substr(start + 2, end - start - 2), depth);
      text.remove_prefix(end + 1);
    }
  }

 private:
  std::string look_up(std::string_view reference, int depth) const {
    const size_t dash = reference.find(":-");
    const std::string name(reference.substr(0, dash));
    if (!is_variable_name(name))
      throw Refusal{fmt::format("${{{}}} does not name a variable", reference.substr(0, 40)),
                    "write ${NAME} or ${NAME:-default}"};
    const std::string* value = find_variable(environment_, name);
    if (holds_a_secret(name, value == nullptr ? "" : *value))
      throw Refusal{
          fmt::format("${{{}}} must not appear in a configuration: configurations are printed and stored", name),
          "delete it; the frameworks read it from the environment"};
    if (value != nullptr) return *value;
    if (dash != std::string_view::npos) return expand(reference.substr(dash + 2), depth + 1);
    throw Refusal{fmt::format("the environment variable {} is not set", name),
                  fmt::format("set it, or give a default: ${{{}:-value}}", name)};
  }

  const Environment& environment_;
};

void expand_at(YamlNode& node, const std::string& path, const Expander& expander, Diagnosis& diagnosis) {
  for (YamlEntry& entry : node.entries) expand_at(entry.value, join_path(path, entry.key), expander, diagnosis);
  for (YamlNode& item : node.items) expand_at(item, path, expander, diagnosis);
  if (!node.is_scalar() || node.scalar.find("${") == std::string::npos) return;
  try {
    node.scalar = expander.expand(node.scalar, 0);
    node.quoted = false;  // "${N:-8}" needs its quotes inside braces and may still mean a number
  } catch (const Refusal& refusal) {
    diagnosis.add_error({refusal.what, node.origin.text(), refusal.hint}, path);
  }
}

}  // namespace

std::string upper_path(std::string path) {
  for (char& c : path) c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::toupper(c)) : '_';
  return path;
}

std::string log_variable(const std::string& model) { return upper_path(model) + "_LOG"; }

const std::vector<ConfigVariable>& named_variables() {
  static const std::vector<ConfigVariable> variables =
      with_gpu_counts({{"FRAMEWORKS", "experiment.frameworks"},
                       {"PARALLEL", "experiment.methodology"},
                       {"TRAIN_ITERS", "training.duration.max_steps"},
                       {"CONFIG_OUTPUT_DIR", "benchmarking.output.directory"},
                       {"PRIMUS_PATH", "paths.primus.installation"},
                       {"MEGATRON_PATH", "paths.megatron.installation"},
                       {"MEGATRON_DEEPSPEED_PATH", "paths.megatron_deepspeed.installation"}});
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

const std::string* find_variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

void expand_variables(YamlNode& tree, const Environment& environment, Diagnosis& diagnosis) {
  expand_at(tree, "", Expander(environment), diagnosis);
}

}  // namespace tprimat::suite
