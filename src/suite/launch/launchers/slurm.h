#pragma once

#include "launch/launchers.h"

namespace tprimat::suite {

// A job of Slurm: srun where an allocation is there already or the configuration says so, else a job script, which a
// small script submits, follows and cancels.
void place_under_slurm(const Placement& placement, LaunchPlan& plan);
bool is_slurm_here(const LauncherSettings& settings);

}  // namespace tprimat::suite
