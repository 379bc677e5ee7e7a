#pragma once

#include "launch/frameworks.h"

namespace tprimat {

// The trainer inside this program: `tprimat train --spec FILE`, with the step records in $TPRIMAT_STEPS.
std::optional<Installation> find_native();
LaunchPlan plan_native(const LaunchRequest& request);

}  // namespace tprimat
