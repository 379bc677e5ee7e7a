#pragma once

#include "compare/differences.h"

namespace tprimat::results {

// What `tprimat doctor` found before the runs of one side, and before none of the other: of sides with at least one run
// whose machine was examined.
Shown check_machine_findings(const Sides& sides);

}  // namespace tprimat::results
