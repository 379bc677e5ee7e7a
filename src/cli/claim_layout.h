#pragma once

#include "cli/claim_options.h"

namespace tprimat::cli {

// Throws Error for a layout that cannot run, and for options that the model has no use for.
void require_layout(const ClaimOptions& options, const ModelSpec& model);

}  // namespace tprimat::cli
