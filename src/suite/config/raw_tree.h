#pragma once

#include <map>
#include <string>

#include "config/raw.h"
#include "text/yaml.h"

namespace tprimat::suite {

// The tree as structs. What is missing or of the wrong type stays absent: check_values has reported it.
raw::Config read_raw(const YamlNode& tree);

// The structs as a tree, strings quoted, keys in the order of the field lists. A value's origin is that in `derived`
// (by path), else that in `tree`, else empty.
YamlNode write_raw(const raw::Config& config, const YamlNode& tree, const std::map<std::string, Origin>& derived);

}  // namespace tprimat::suite
