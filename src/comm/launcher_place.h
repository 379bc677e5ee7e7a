#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace tprimat {

// One variable of the environment; nothing when it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string& name)>;

// launcher_place() for any environment. Open MPI's mpirun, MPICH's and Intel's mpiexec, and srun are known. What
// torchrun sets (RANK, WORLD_SIZE) says nothing of MPI and is not looked at. Variables that contradict each other count
// as absent.
LauncherPlace read_launcher_place(const EnvironmentReader& read);

}  // namespace tprimat
