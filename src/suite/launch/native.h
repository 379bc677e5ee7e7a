#pragma once

#include "launch/frameworks.h"

namespace tprimat::suite {

// The trainer beside this program: `tprimat train --spec FILE`, with the step records in $TPRIMAT_STEPS.
// A layout of several ranks is started by MPI, with `threads` threads in each.
std::optional<Installation> find_native(const Checkout&);
// The module of the GPUs of that platform, which a build for processors has not.
std::optional<Problem> lacking_of_native(Platform platform);
TrainProgram plan_native(const LaunchRequest& request);

}  // namespace tprimat::suite
