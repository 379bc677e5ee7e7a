#pragma once

#include "extract/to_result.h"

namespace tprimat::logs {

// A name that no catalogue knows leaves figures out, and may be a slip.
void warn_about_unknown_names(RunResult& result, const KnownFacts& known);

}  // namespace tprimat::logs
