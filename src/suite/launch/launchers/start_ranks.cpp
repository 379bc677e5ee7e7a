#include "launch/launchers/start_ranks.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat::suite {
namespace {

// The system places the threads, not mpirun, which would bind each rank to one core. Oversubscription is allowed, so
// that a layout can be tried on a small machine. In containers the user is root.
Arguments local_mpirun(int64_t ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

Arguments local_torchrun(const std::string& python, int64_t ranks) {
  return {python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", std::to_string(ranks)};
}

// Whether to start one process per node instead of one per rank.
bool starts_per_node(const TrainProgram& program) {
  return program.start == RankStart::torchrun || program.start == RankStart::per_node;
}

std::string render_node_script(const Placement& placement, const NodeNumbers& numbers) {
  const LauncherSettings& settings = placement.request.launch;
  const bool stated = !settings.master_address.empty();
  std::string text =
      "#!/bin/sh\n# Exports the node rank and rendezvous address of one process, then runs its arguments.\n";
  if (!stated) text += numbers.before;
  text += fmt::format("export NNODES={} NODE_RANK=\"{}\" GPUS_PER_NODE={}\n", placement.nodes, numbers.rank,
                      placement.ranks_per_node());
  text += fmt::format("export MASTER_ADDR={} MASTER_PORT={}\n",
                      stated ? quote_shell(settings.master_address) : numbers.first_host, settings.master_port);
  if (placement.program.start != RankStart::torchrun) return text + "exec \"$@\"\n";
  return text + fmt::format(
                    "exec {} -m torch.distributed.run --nnodes {} --node-rank \"$NODE_RANK\" "
                    "--nproc-per-node {} --master-addr \"$MASTER_ADDR\" --master-port \"$MASTER_PORT\" \"$@\"\n",
                    quote_shell(placement.program.python), placement.nodes, placement.ranks_per_node());
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

int64_t tasks_per_node(const Placement& placement) {
  return starts_per_node(placement.program) ? 1 : placement.ranks_per_node();
}

// A container may lack scontrol; then the first name is taken out of "node[01-04,07]" or "a,b".
NodeNumbers slurm_node_numbers(const std::string& rank, const std::string& list) {
  NodeNumbers numbers{rank, "\"$first\"", ""};
  numbers.before = "first=$(scontrol show hostnames \"$" + list + "\" 2>/dev/null | head -n 1)\n";
  numbers.before += "[ -n \"$first\" ] ||\n  first=$(printf '%s\\n' \"$" + list +
                    "\" | sed -E 's/^([^[,]*)\\[([^],-]*).*/\\1\\2/; s/,.*//')\n";
  return numbers;
}

Arguments task_arguments(const Placement& placement, LaunchPlan& plan, const std::function<NodeNumbers()>& numbers) {
  const TrainProgram& program = placement.program;
  if (!starts_per_node(program) || placement.nodes == 1)  // on one node the processes know it
    return program.start == RankStart::torchrun ? start_ranks_there(program, placement.ranks) : program.arguments;
  const std::string path = placement.request.paths.folder + "/start_node.sh";
  plan.files.push_back({path, render_node_script(placement, numbers())});
  Arguments arguments = {"sh", path};
  append(arguments, program.arguments);
  return arguments;
}

}  // namespace tprimat::suite
