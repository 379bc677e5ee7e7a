#pragma once

#include <string>

#include "text/json.h"

namespace tprimat::suite {

// One YAML document in block style: texts of several lines as such, other texts in double quotes where YAML would read
// them as something else.
std::string print_manifest(const Json& document);

}  // namespace tprimat::suite
