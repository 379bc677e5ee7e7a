#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "result/run_result.h"

namespace tprimat {

// A result of this schema version as it was written, nothing checked or derived. Nothing for everything that the
// ordinary reader must look at: older and newer versions, damaged files, values of a wrong type.
std::optional<RunResult> read_current_result(std::string_view text);

}  // namespace tprimat
