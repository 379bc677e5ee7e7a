#pragma once

#include <functional>
#include <string>

#include "launch/argument_list.h"
#include "launch/launchers.h"

// What the launchers share.
namespace tprimat::suite {

// The command on one machine, wherever that is: nothing is asked of PATH here.
Arguments start_ranks_there(const TrainProgram& program, int64_t ranks);

// What a program that starts a node's ranks itself wants to know, on one machine. What it states itself stays.
void describe_single_node(const Placement& placement, LaunchPlan& plan);

// mpirun and its options, up to the arguments that it starts: equally many on each node, with the variables of the
// plan.
Arguments mpirun_over_nodes(const Placement& placement, const LaunchPlan& plan);

// Processes that a launcher starts on each node: one per rank, or one where something else starts the ranks there.
int64_t tasks_per_node(const Placement& placement);

// How a process learns on which node of how many it is.
struct NodeNumbers {
  std::string rank;        // shell expression for the number of its node
  std::string first_host;  // shell expression for the host of node 0; may need `before`
  std::string before;      // lines of shell that come first
};

// Numbers from Slurm's variables. `list` is that which holds the nodes: SLURM_STEP_NODELIST or SLURM_JOB_NODELIST.
NodeNumbers slurm_node_numbers(const std::string& rank, const std::string& list);

// What each of these processes is. On several nodes, one per node runs through a script among the plan's files, which
// tells it its node and where the nodes meet (NNODES, NODE_RANK, GPUS_PER_NODE, MASTER_ADDR, MASTER_PORT) and puts a
// program of torchrun under one that starts the ranks of this node.
Arguments task_arguments(const Placement& placement, LaunchPlan& plan, const std::function<NodeNumbers()>& numbers);

}  // namespace tprimat::suite
