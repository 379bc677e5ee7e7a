#pragma once

#include "cli/extract_request.h"

namespace tprimat::cli {

// `extract` without a path: the newest log of each run in the usual places, with what the configuration states.
ExitStatus extract_gathered(const ExtractRequest& request, const Session& session);

}  // namespace tprimat::cli
