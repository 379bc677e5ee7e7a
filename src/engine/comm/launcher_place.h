#pragma once

#include "base/environment.h"
#include "comm/communicator.h"

namespace tprimat::engine {

// launcher_place() for any environment. Launchers start each other, and the innermost one counts. In this order:
//   1. torchrun itself (TORCHELASTIC_RUN_ID), which mpirun or srun may have started once per machine: over TCP
//   2. Open MPI's mpirun, MPICH's and Intel's mpiexec: over MPI
//   3. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, all of them, as Kubernetes' PyTorchJob sets them and people
//   export
//      them in a step of srun: over TCP. LOCAL_RANK and LOCAL_WORLD_SIZE may be there too
//   4. srun: over MPI
// Variables that contradict each other count as absent.
LauncherPlace read_launcher_place(const EnvironmentReader& read);

}  // namespace tprimat::engine
