#pragma once

#include <optional>
#include <string_view>

#include "result/kinds.h"

namespace tprimat::logs {

// What the words of an error message, or of a line near the end of a log, say of its cause. Nothing when they say none.
std::optional<FailureKind> find_failure_kind(std::string_view text);

}  // namespace tprimat::logs
