#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "text/yaml.h"

namespace tprimat::suite {

// One environment variable that sets one key.
struct ConfigVariable {
  std::string name;  // "CONFIG_TRAINING_DATA_SEQ_LENGTH", "TRAIN_ITERS"
  std::string path;  // "training.data.seq_length"
};

// The variables with a name of their own: FRAMEWORKS, PARALLEL, TRAIN_ITERS, CONFIG_OUTPUT_DIR, PRIMUS_PATH ...
const std::vector<ConfigVariable>& named_variables();

// CONFIG_<UPPER_PATH> for every key of `tree`'s models, platforms and strategies, in every spelling.
std::vector<ConfigVariable> list_path_variables(const KeySchema& schema, const YamlNode& tree);

// The variable to export for a key: CONFIG_OUTPUT_DIR and its like where there is one, else CONFIG_<UPPER_PATH>.
std::string variable_name(const std::string& path);

}  // namespace tprimat::suite
