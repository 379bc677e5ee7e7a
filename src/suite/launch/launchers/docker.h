#pragma once

#include "launch/launchers.h"

namespace tprimat::suite {

// A container on this machine, in which the ranks start as they do on a machine of their own.
void place_in_container(const Placement& placement, LaunchPlan& plan);
bool is_container_program_here(const LauncherSettings& settings);

}  // namespace tprimat::suite
