#pragma once

#include <map>
#include <string>

#include "config/diagnosis.h"
#include "text/yaml.h"

namespace tprimat::suite {

using Environment = std::map<std::string, std::string>;

// Replaces ${NAME} and ${NAME:-default} in every scalar. The default is used when NAME is unset or empty, as in a
// shell, and may itself hold ${...}. What a variable holds is not expanded again. An unset variable without a default
// is an error, and so is one that names_a_secret (base/environment.h): configurations are printed and stored.
void expand_variables(YamlNode& tree, const Environment& environment, Diagnosis& diagnosis);

// The variable's value; nothing when it is unset or empty.
const std::string* find_variable(const Environment& environment, const std::string& name);

}  // namespace tprimat::suite
