#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "launch/installed.h"
#include "launch/launchers/start_ranks.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

bool in_batch_job() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"})
    if (std::getenv(variable) != nullptr) return true;
  return false;
}

bool names_hosts(const MpiSettings& settings) { return !settings.hosts.empty() || !settings.hostfile.empty(); }

void require_hosts(const Placement& placement) {
  if (placement.nodes == 1 || names_hosts(placement.request.launch.mpi) || in_batch_job()) return;
  throw Error(Problem{fmt::format("no host names are given for the {} nodes", placement.nodes), "launch.mpi",
                      "name them in launch.mpi.hosts or launch.mpi.hostfile"});
}

std::string without_slots(const std::string& host) { return host.substr(0, host.find(':')); }

// "node1 slots=8  # rack 3": the first word of the first line that is not a comment.
std::string first_host_of_file(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line, host;
  while (std::getline(lines, line))
    if (std::istringstream(line.substr(0, line.find('#'))) >> host) return without_slots(host);
  throw Error(Problem{"contains no host", path, "write one host per line, such as: node1 slots=8"});
}

NodeNumbers node_numbers(const MpiSettings& settings) {
  const std::string rank = "$OMPI_COMM_WORLD_RANK";
  if (!settings.hosts.empty()) return {rank, quote_shell(without_slots(settings.hosts.front())), ""};
  if (!settings.hostfile.empty()) return {rank, quote_shell(first_host_of_file(settings.hostfile)), ""};
  return slurm_node_numbers(rank, "SLURM_JOB_NODELIST");
}

Arguments host_arguments(const Placement& placement) {
  const MpiSettings& settings = placement.request.launch.mpi;
  if (!settings.hostfile.empty()) return {"--hostfile", settings.hostfile};
  std::string list;
  for (const std::string& host : settings.hosts)
    list += (list.empty() ? "" : ",") + without_slots(host) + ":" + std::to_string(placement.ranks_per_node());
  return list.empty() ? Arguments{} : Arguments{"--host", list};
}

void place_under_mpirun(const Placement& placement, LaunchPlan& plan) {
  const MpiSettings& settings = placement.request.launch.mpi;
  require_hosts(placement);
  if (placement.nodes == 1) describe_single_node(placement, plan);
  plan.command = mpirun_over_nodes(placement, plan);
  append(plan.command, task_arguments(placement, plan, [&] { return node_numbers(settings); }));
  if (placement.nodes > 1 || names_hosts(settings)) plan.place = Whereabouts::elsewhere;
}

}  // namespace

Arguments mpirun_over_nodes(const Placement& placement, const LaunchPlan& plan) {
  const int64_t on_each = tasks_per_node(placement);
  Arguments arguments = {"mpirun",
                         "--allow-run-as-root",
                         "--oversubscribe",
                         "--bind-to",
                         "none",
                         "--map-by",
                         fmt::format("ppr:{}:node", on_each),
                         "-n",
                         std::to_string(on_each * placement.nodes)};
  append(arguments, host_arguments(placement));
  for (const auto& [name, value] : plan.environment) arguments.insert(arguments.end(), {"-x", name});
  append(arguments, placement.request.launch.mpi.arguments);
  return arguments;
}

// mpirun over the nodes of a hostfile, a list or a batch system. A torchrun program gets one torchrun per node.
LauncherModule mpi_launcher() {
  return {Launcher::mpi,           "mpirun",
          place_under_mpirun,      [](const LauncherSettings&) { return find_in_path("mpirun").has_value(); },
          "mpirun is not in PATH", "sudo apt-get install openmpi-bin"};
}

}  // namespace tprimat::suite
