#pragma once

#include <string>
#include <vector>

#include "launch/launchers.h"

namespace tprimat::suite {

// Tasks that Slurm starts: one per rank, or one per node where something else starts the ranks there.
int64_t slurm_tasks_per_node(const Placement& placement);

// "--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=2": as sbatch and srun both want it.
std::vector<std::string> slurm_shape(const Placement& placement);

// What only whoever asks for nodes says: "--partition=gpu", "--gres=gpu:4", "--exclusive", the further arguments.
std::vector<std::string> slurm_wishes(const Placement& placement);

// What only srun knows: "--mpi=pmix", "--container-image=...".
std::vector<std::string> slurm_step(const Placement& placement, const LaunchPlan& plan);

}  // namespace tprimat::suite
