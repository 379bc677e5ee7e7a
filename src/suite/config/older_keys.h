#pragma once

#include <string>
#include <vector>

#include "config/diagnosis.h"
#include "text/yaml.h"

// The keys that configurations of the older TPRIMAT scripts have beside ours.
namespace tprimat::suite {

// One key, with * for a name. `successor` is the key of the same meaning; empty: the key has no effect.
struct OlderKey {
  std::string path, successor;
};
const std::vector<OlderKey>& older_keys();

// Moves the values of a file's older keys to their successors and drops those without effect; one warning names the
// former, one the latter. `tree` has canonical keys. A key that looks like an older one but is none is an error.
// Returns whether the file has older keys.
bool translate_older_keys(YamlNode& tree, const std::string& file, Diagnosis& diagnosis);

}  // namespace tprimat::suite
