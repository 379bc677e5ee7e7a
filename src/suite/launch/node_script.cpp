#include "launch/node_script.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat::suite {

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

// A container may lack scontrol; then the first name is taken out of "node[01-04,07]" or "a,b".
NodeNumbers slurm_node_numbers(const std::string& rank, const std::string& list) {
  NodeNumbers numbers{rank, "\"$first\"", ""};
  numbers.before = "first=$(scontrol show hostnames \"$" + list + "\" 2>/dev/null | head -n 1)\n";
  numbers.before += "[ -n \"$first\" ] ||\n  first=$(printf '%s\\n' \"$" + list +
                    "\" | sed -E 's/^([^[,]*)\\[([^],-]*).*/\\1\\2/; s/,.*//')\n";
  return numbers;
}

bool starts_per_node(const TrainProgram& program) {
  return program.start == RankStart::torchrun || program.start == RankStart::per_node;
}

bool needs_node_script(const Placement& placement) { return starts_per_node(placement.program) && placement.nodes > 1; }

}  // namespace tprimat::suite
