#pragma once

#include <map>
#include <optional>
#include <string>

#include "result/run_result.h"

namespace tprimat {

// The printed setting that leaves most weights frozen, as "lora_rank 16": adapters train beside them, or some layers
// alone are trained. Sizes of adapters count only where no switch beside them says that there are none: some programs
// print their defaults.
std::optional<std::string> find_adapters(const std::map<std::string, std::string>& settings);
std::optional<std::string> find_adapters(const RunResult& result);

}  // namespace tprimat
