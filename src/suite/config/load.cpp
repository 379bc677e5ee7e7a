#include "config/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "config/check_tree.h"
#include "config/draft.h"
#include "config/layers.h"
#include "config/shell_file.h"
#include "config/values.h"
#include "config/variables.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_usual_file = "config.yaml";

// A fault that a person's file causes in a value that it leaves open is that file's.
std::vector<Problem> in_file(std::vector<Problem> errors, const Origin& origin) {
  if (origin.provenance == Provenance::file)
    for (Problem& error : errors)
      if (error.where == Origin{Provenance::built_in}.text()) error.where = origin.place;
  return errors;
}

LoadedExperiment resolve(const YamlNode& tree, Diagnosis& diagnosis, Origin origin, const ConfigLayers& layers) {
  check_values(config_schema(), tree, diagnosis);
  Draft draft{tree, diagnosis, read_raw(tree), {}, {}, layers.plans_layouts, layers.open_ranks};
  resolve_training(draft);
  resolve_models(draft);
  resolve_loop(draft);
  resolve_platforms(draft);
  resolve_frameworks(draft);
  resolve_launch(draft);
  resolve_figures(draft);
  resolve_layouts(draft);
  check_fairness(draft);
  if (!diagnosis.errors().empty()) throw Error(in_file(diagnosis.errors(), origin));
  YamlNode settings = write_raw(draft.raw, tree, draft.derived);
  return {std::move(draft.experiment), diagnosis.warnings(), std::move(origin), std::move(settings)};
}

LoadedExperiment load_layers(const ConfigLayers& layers) {
  Diagnosis diagnosis;
  const YamlNode tree = merge_layers(layers, diagnosis);
  return resolve(
      tree, diagnosis,
      layers.has_file ? Origin{Provenance::file, std::string(layers.file_name)} : Origin{Provenance::built_in}, layers);
}

// A file larger than any configuration is not read whole first.
std::string read_config_file(const std::string& path) {
  std::error_code error;
  const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (!error && size > k_max_yaml_bytes)
    throw Error(Problem{"is larger than 1 MiB, the limit for a configuration", path, ""});
  return read_file(path);
}

std::string export_value(const YamlNode& node) {
  if (node.is_scalar()) return node.scalar;
  std::string list;
  for (const YamlNode& item : node.items) list += (list.empty() ? "" : ",") + item.scalar;
  return list;
}

void list_exports_at(const YamlNode& node, const std::string& path, std::vector<ExportedVariable>& exports) {
  if (!node.is_map() && node.kind != YamlNode::Kind::null)
    exports.push_back({variable_name(path), export_value(node), path});
  for (const YamlEntry& entry : node.entries) list_exports_at(entry.value, join_path(path, entry.key), exports);
}

// Models a-b, a_b and A_B would all map to CONFIG_MODELS_A_B_...: the first such group is reported.
void refuse_shared_variables(const std::vector<ExportedVariable>& exports) {
  std::map<std::string, std::string> paths;
  for (const ExportedVariable& each : exports) {
    const auto [first, is_new] = paths.try_emplace(each.name, each.path);
    if (!is_new)
      throw Error(Problem{fmt::format("{} and {} map to the same variable {}", first->second, each.path, each.name), "",
                          "rename one: names must differ in more than case and punctuation"});
  }
}

}  // namespace

std::map<std::string, std::string> current_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

bool has_config_file(const ConfigSources& sources) {
  std::error_code error;
  return sources.path || fs::exists(k_usual_file, error);
}

LoadedExperiment load_experiment(const ConfigSources& sources) {
  const bool has_file = has_config_file(sources);
  if (!has_file && sources.machine_default)
    return load_experiment_text(sources.machine_default->text, sources.machine_default->name, sources);
  if (!has_file)
    return load_layers({"", "", false, sources.environment, sources.overrides, sources.strategy, sources.plans_layouts,
                        sources.has_several_strategies, sources.open_ranks});
  const std::string path = sources.path.value_or(k_usual_file);
  const std::string text = read_config_file(path);
  refuse_shell_file(text, path);
  return load_experiment_text(text, path, sources);
}

LoadedExperiment load_experiment_text(std::string_view text, const std::string& name, const ConfigSources& sources) {
  return load_layers({text, name, true, sources.environment, sources.overrides, sources.strategy, sources.plans_layouts,
                      sources.has_several_strategies, sources.open_ranks});
}

std::string canonical_key_path(const std::string& path) { return canonical_path(path, "key " + path); }

std::vector<ExportedVariable> list_exports(const YamlNode& settings) {
  std::vector<ExportedVariable> exports;
  list_exports_at(settings, "", exports);
  refuse_shared_variables(exports);
  return exports;
}

}  // namespace tprimat::suite
