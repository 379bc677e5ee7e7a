#pragma once

#include "launch/frameworks.h"

namespace tprimat {

// The trainer inside this program: `tprimat train --spec FILE`, with the step records in $TPRIMAT_STEPS.
// A layout of several ranks is started by MPI, with `threads` threads in each.
std::optional<Installation> find_native(const Checkout&);
TrainProgram plan_native(const LaunchRequest& request);

}  // namespace tprimat
