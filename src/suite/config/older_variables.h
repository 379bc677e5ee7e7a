#pragma once

#include <string>
#include <vector>

#include "config/variables.h"
#include "text/yaml.h"

// The variables that the older scripts' config_to_shell.py exports. One with an empty path has no key here.
namespace tprimat::suite {

// Those whose key is always the same: CONFIG_TRAIN_ITERS, CONFIG_SEQ_LENGTH ...
const std::vector<ConfigVariable>& older_variables();

// Those of `tree`'s platforms and models: CONFIG_AMD_PRECISION, CONFIG_LLAMA_PRIMUS_CONFIG, and CONFIG_LLAMA_AMD_TP for
// the layout of `strategy`.
std::vector<ConfigVariable> older_variables_of(const YamlNode& tree, const std::string& strategy);

}  // namespace tprimat::suite
