#pragma once

#include <string>

#include "launch/launchers.h"

namespace tprimat::suite {

// How a process learns on which node of how many it is.
struct NodeNumbers {
  std::string rank;        // shell expression for the number of its node
  std::string first_host;  // shell expression for the host of node 0; may need `before`
  std::string before;      // lines of shell that come first
};

// A few lines of shell for `sh FILE WORDS...`: they tell the process its node and where the nodes meet (NNODES,
// NODE_RANK, GPUS_PER_NODE, MASTER_ADDR, MASTER_PORT), then become WORDS; a program of torchrun is put under one that
// starts the ranks of this node.
std::string render_node_script(const Placement& placement, const NodeNumbers& numbers);

// Numbers from Slurm's variables. `list` is that which holds the nodes: SLURM_STEP_NODELIST or SLURM_JOB_NODELIST.
NodeNumbers slurm_node_numbers(const std::string& rank, const std::string& list);

// Whether one process per node is to be started, and not one per rank.
bool starts_per_node(const TrainProgram& program);

// Whether its processes must be told their node: those of one node know it.
bool needs_node_script(const Placement& placement);

}  // namespace tprimat::suite
