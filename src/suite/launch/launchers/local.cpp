#include <fmt/format.h>

#include "base/error.h"
#include "launch/installed.h"
#include "launch/launchers/start_ranks.h"

namespace tprimat::suite {
namespace {

void require_mpirun(int64_t ranks) {
  if (find_in_path("mpirun")) return;
  throw Error(Problem{fmt::format("this layout needs {} ranks, but there is no mpirun to start them", ranks), "PATH",
                      "sudo apt-get install openmpi-bin"},
              ExitStatus::missing_component);
}

void place_locally(const Placement& placement, LaunchPlan& plan) {
  describe_single_node(placement, plan);
  if (placement.program.start == RankStart::mpi) require_mpirun(placement.ranks);
  plan.command = start_ranks_there(placement.program, placement.ranks);
}

}  // namespace

// This machine: mpirun for MPI programs, torchrun for those of PyTorch. The layout decides whether mpirun is needed.
LauncherModule local_launcher() {
  return {Launcher::local,
          "this machine",
          place_locally,
          [](const LauncherSettings&) { return true; },
          "",
          "it is part of this program"};
}

}  // namespace tprimat::suite
