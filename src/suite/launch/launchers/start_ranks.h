#pragma once

#include <functional>
#include <string>

#include "launch/argument_list.h"
#include "launch/launchers.h"

// Common code of the launchers.
namespace tprimat::suite {

// The command on one machine, maybe a remote one, so PATH is not searched here.
Arguments start_ranks_there(const TrainProgram& program, int64_t ranks);

// Variables of a program that starts its node's ranks itself, on one machine. Its own values take precedence.
void describe_single_node(const Placement& placement, LaunchPlan& plan);

// mpirun and its options, up to the arguments that it starts: equally many on each node, with the variables of the
// plan.
Arguments mpirun_over_nodes(const Placement& placement, const LaunchPlan& plan);

// Processes that a launcher starts on each node: one per rank, or one that starts the ranks there.
int64_t tasks_per_node(const Placement& placement);

// How a process learns its node's number and the rendezvous host.
struct NodeNumbers {
  std::string rank;        // shell expression for the number of its node
  std::string first_host;  // shell expression for the host of node 0; may need `before`
  std::string before;      // lines of shell that come first
};

// Numbers from Slurm's variables. `list` names the variable with the nodes: SLURM_STEP_NODELIST or SLURM_JOB_NODELIST.
NodeNumbers slurm_node_numbers(const std::string& rank, const std::string& list);

// The command of each of these processes. On several nodes, the process of a node starts through a script among the
// plan's files, which exports its node and the rendezvous (NNODES, NODE_RANK, GPUS_PER_NODE, MASTER_ADDR, MASTER_PORT)
// and runs a torchrun program under torchrun.
Arguments task_arguments(const Placement& placement, LaunchPlan& plan, const std::function<NodeNumbers()>& numbers);

}  // namespace tprimat::suite
