#pragma once

#include "launch/launchers.h"

namespace tprimat::suite {

// mpirun over nodes that a hostfile, a list or a batch system names. A program of torchrun gets one torchrun per node.
void place_under_mpirun(const Placement& placement, LaunchPlan& plan);
bool is_mpirun_here(const LauncherSettings& settings);

// mpirun and its options, up to the arguments that it starts: `processes` of them, equally many on each node, with the
// variables of the plan.
std::vector<std::string> mpirun_over_nodes(const Placement& placement, const LaunchPlan& plan);

}  // namespace tprimat::suite
