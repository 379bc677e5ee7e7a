#pragma once

#include "compare/comparison.h"

namespace tprimat::cli {

// Fills in the causes of each pair of which both sides have a profile. A ledger that is refused is a sentence; a
// damaged trace never ends the comparison.
void name_causes(results::Comparison& comparison);

}  // namespace tprimat::cli
