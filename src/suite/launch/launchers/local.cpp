#include "launch/launchers/local.h"

#include <fmt/format.h>

#include "base/error.h"
#include "launch/argument_list.h"
#include "launch/program_path.h"

namespace tprimat::suite {
namespace {

void require_mpirun(int64_t ranks) {
  if (is_in_path("mpirun")) return;
  throw Error(Problem{fmt::format("this layout needs {} ranks, but there is no mpirun to start them", ranks), "PATH",
                      "sudo apt-get install openmpi-bin"},
              ExitStatus::missing_component);
}

// Threads are placed by the system, not by mpirun, which would bind each rank to one core. More ranks than processors
// are allowed: a layout can be tried on a small machine. In containers everybody is root.
Arguments local_mpirun(int64_t ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

Arguments local_torchrun(const std::string& python, int64_t ranks) {
  return {python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", std::to_string(ranks)};
}

}  // namespace

Arguments start_ranks_there(const TrainProgram& program, int64_t ranks) {
  Arguments command;
  if (program.start == RankStart::mpi) command = local_mpirun(ranks);
  if (program.start == RankStart::torchrun) command = local_torchrun(program.python, ranks);
  append(command, program.arguments);
  return command;
}

void describe_single_node(const Placement& placement, LaunchPlan& plan) {
  if (placement.program.start != RankStart::per_node) return;
  const LauncherSettings& settings = placement.request.launch;
  plan.environment.emplace("NNODES", "1");
  plan.environment.emplace("NODE_RANK", "0");
  plan.environment.emplace("GPUS_PER_NODE", std::to_string(placement.ranks));
  plan.environment.emplace("MASTER_ADDR", "localhost");
  plan.environment.emplace("MASTER_PORT", std::to_string(settings.master_port));
}

void place_locally(const Placement& placement, LaunchPlan& plan) {
  describe_single_node(placement, plan);
  if (placement.program.start == RankStart::mpi) require_mpirun(placement.ranks);
  plan.command = start_ranks_there(placement.program, placement.ranks);
}

bool is_local_here(const LauncherSettings&) { return true; }  // the layout decides whether mpirun is needed

}  // namespace tprimat::suite
