#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/experiment.h"
#include "text/yaml.h"

namespace tprimat::suite {

// A whole configuration that stands in for a file.
struct MachineDefault {
  std::string name;  // of its values' origins
  std::string text;
};

// The sources of a configuration, strongest first: --set, environment, file, built-in default.
struct ConfigSources {
  std::optional<std::string> path;                     // nothing: ./config.yaml if it exists, else the built-in default
  std::vector<std::string> overrides;                  // "training.data.seq_length=4096"
  std::map<std::string, std::string> environment;      // normally current_environment()
  std::optional<std::string> strategy = std::nullopt;  // --strategy: the methodology, stronger than all else
  bool plans_layouts = false;                          // the planner chooses the layouts, so that no strategy needs one
  std::optional<MachineDefault> machine_default = std::nullopt;  // instead of the built-in default, for this machine
  bool has_several_strategies = false;                           // --strategy names more than one
  OpenRanks open_ranks = {};                                     // of processors, where a run may choose them
};
bool has_config_file(const ConfigSources& sources);  // named or found
std::map<std::string, std::string> current_environment();

struct LoadedExperiment {
  Experiment experiment;
  std::vector<Problem> warnings;  // doubtful but usable values, such as a peak that contradicts the catalogue
  Origin origin;                  // "config.yaml", "built-in default"
  YamlNode settings;              // all effective keys, canonical, each with its origin: the output of `config show`
};

// Throws Error with all problems of the file at once, each at file:line:column (or "--set key", "environment NAME").
LoadedExperiment load_experiment(const ConfigSources& sources);

// The same for the text of a file; sources.path is not used. `name` is the file's name in origins.
LoadedExperiment load_experiment_text(std::string_view text, const std::string& name, const ConfigSources& sources);

// The built-in default, as `tprimat config init` writes it.
std::string_view default_config_text();

// "hardware.platforms.nvidia.num_gpus" -> "hardware.platforms.nvd.num_gpus". Throws Error with "did you mean" for a key
// that cannot exist.
std::string canonical_key_path(const std::string& path);

// An environment variable and the value that repeats a setting: eval "$(tprimat config export --shell)".
struct ExportedVariable {
  std::string name, value;
  std::string path = {};  // of the key
};
// Throws Error where two keys would be one variable.
std::vector<ExportedVariable> list_exports(const YamlNode& settings);

}  // namespace tprimat::suite
