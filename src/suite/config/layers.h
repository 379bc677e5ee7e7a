#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnosis.h"
#include "config/experiment.h"
#include "config/variables.h"
#include "text/yaml.h"

namespace tprimat::suite {

// The layers of a configuration, weakest first: built-in default, file, environment, --set, --strategy.
struct ConfigLayers {
  std::string_view file_text;  // empty view with `has_file` false: the built-in default alone
  std::string file_name;       // for origins
  bool has_file = false;
  const Environment& environment;
  const std::vector<std::string>& overrides;   // "a.b=c"
  const std::optional<std::string>& strategy;  // experiment.methodology
  bool plans_layouts = false;                  // as in ConfigSources
  bool has_several_strategies = false;         // as in ConfigSources
  OpenRanks open_ranks = {};                   // of processors, where a run may choose them
};

// One tree with canonical keys, ${...} expanded, every value with its own origin. The file's named entries (models,
// platforms, strategies, prices, paths) replace the default's as a whole; everything else merges key by key. Throws
// Error for a file that is not YAML; other problems go to `diagnosis`.
YamlNode merge_layers(const ConfigLayers& layers, Diagnosis& diagnosis);

// "a.b.c" with every element in its canonical spelling. Throws Error with "did you mean" for a key that cannot exist.
std::string canonical_path(const std::string& path, const std::string& where);

}  // namespace tprimat::suite
