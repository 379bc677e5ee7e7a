#pragma once

#include <string_view>
#include <vector>

#include "extract/dialect.h"

namespace tprimat::logs {

const std::vector<Dialect>& dialects();  // every log format; where two fit equally well, the first is taken

// What runs on every log whatever its format: failures and pauses, machine facts, effective settings.
const std::vector<Dialect>& common_readers();

const Dialect& find_dialect(std::string_view id);  // throws Error that names the nearest one

}  // namespace tprimat::logs
