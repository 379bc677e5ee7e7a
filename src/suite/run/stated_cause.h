#pragma once

#include <optional>
#include <string>

#include "extract/common/failure_cause.h"

namespace tprimat::suite {

// The cause in a launcher's file, "KIND SENTENCE": why the run failed, or what it still waits for. Nothing where there
// is none.
std::optional<logs::EndCause> read_stated_cause(const std::string& path);

}  // namespace tprimat::suite
