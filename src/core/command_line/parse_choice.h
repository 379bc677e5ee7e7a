#pragma once

#include <string>
#include <vector>

#include "command_line/options.h"
#include "text/choice.h"

namespace tprimat {

// One of some plain words; for Option::check.
Check one_of(std::vector<std::string> words);

}  // namespace tprimat
