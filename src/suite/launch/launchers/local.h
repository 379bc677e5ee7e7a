#pragma once

#include "launch/launchers.h"

namespace tprimat::suite {

// This machine: mpirun for MPI programs, torchrun for those of PyTorch.
void place_locally(const Placement& placement, LaunchPlan& plan);
bool is_local_here(const LauncherSettings& settings);

// The command on one machine, wherever that is: nothing is asked of PATH here.
std::vector<std::string> start_ranks_there(const TrainProgram& program, int64_t ranks);

// What a program that starts a node's ranks itself wants to know, on one machine. What it states itself stays.
void describe_single_node(const Placement& placement, LaunchPlan& plan);

}  // namespace tprimat::suite
