#pragma once

#include <string>
#include <string_view>

namespace tprimat::logs {

// What a file is that is no training log, and what reads it, from its first bytes: "a Chrome trace: `tprimat profile
// --summarise` reads it". Empty when it may be a log.
std::string describe_other_kind(std::string_view head);

}  // namespace tprimat::logs
