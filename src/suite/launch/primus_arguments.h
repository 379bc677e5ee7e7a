#pragma once

#include <string>
#include <vector>

#include "text/json.h"

namespace tprimat::suite {

// Adds `frameworks.prim.arguments` to the overrides of Primus' experiment file: "--key value", "--key=value", or
// "--key" for true. Values are JSON where they can be read as such, else texts. Throws Error for a word that is none of
// these, and for a key that the overrides have already.
void add_primus_arguments(const std::vector<std::string>& arguments, Json& overrides);

}  // namespace tprimat::suite
