#pragma once

#include "launch/frameworks.h"

namespace tprimat {

// The trainer inside this program: `tprimat train --spec FILE`, with the step records in $TPRIMAT_STEPS.
// A layout of several ranks is started by Open MPI's mpirun, with `threads` threads in each; where there is no mpirun,
// the plan throws Error (ExitStatus::missing_component) that names the package.
std::optional<Installation> find_native();
LaunchPlan plan_native(const LaunchRequest& request);

}  // namespace tprimat
