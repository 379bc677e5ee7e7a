#pragma once

#include <optional>

#include "base/error.h"
#include "text/yaml.h"

namespace tprimat::suite {

// Writes the strategy of a file that states none, where one is meant: the only one under parallelism or, in a file of
// the older scripts, their default. Returns the warning of it, for where no stronger layer names another. Nothing
// changes where every platform has one device.
std::optional<Problem> choose_methodology(YamlNode& tree, bool is_older);

// Whether the methodology is still the one that choose_methodology wrote.
bool is_methodology_chosen(const YamlNode& tree);

}  // namespace tprimat::suite
