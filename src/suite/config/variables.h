#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/diagnosis.h"
#include "config/schema.h"
#include "text/yaml.h"

namespace tprimat::suite {

// One environment variable that sets one key.
struct ConfigVariable {
  std::string name;  // "CONFIG_TRAINING_DATA_SEQ_LENGTH", "TRAIN_ITERS"
  std::string path;  // "training.data.seq_length"
};

// "training.data.seq_length" -> "TRAINING_DATA_SEQ_LENGTH"
std::string upper_path(std::string path);

// The variable that names a model's log: LLAMA_LOG.
std::string log_variable(const std::string& model);

// The variables with their own names: FRAMEWORKS, PARALLEL, TRAIN_ITERS, CONFIG_OUTPUT_DIR, PRIMUS_PATH ...
const std::vector<ConfigVariable>& named_variables();

// CONFIG_<UPPER_PATH> for every key of `tree`'s models, platforms and strategies, in every spelling.
std::vector<ConfigVariable> list_path_variables(const KeySchema& schema, const YamlNode& tree);

// The variable to export for a key: CONFIG_OUTPUT_DIR and its like where there is one, else CONFIG_<UPPER_PATH>.
std::string variable_name(const std::string& path);

using Environment = std::map<std::string, std::string>;

// Replaces ${NAME} and ${NAME:-default} in every scalar. The default is used when NAME is unset or empty, as in a
// shell, and may itself hold ${...}. A variable's value is not expanded again. An unset variable without a default is
// an error, and so is one that holds_a_secret (base/environment.h): configurations are printed and stored.
void expand_variables(YamlNode& tree, const Environment& environment, Diagnosis& diagnosis);

// The variable's value; nothing when it is unset or empty.
const std::string* find_variable(const Environment& environment, const std::string& name);

}  // namespace tprimat::suite
