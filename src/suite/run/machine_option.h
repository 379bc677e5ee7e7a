#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/machine_from_probe.h"

namespace tprimat::suite {

// `tprimat plan --machine` and the options that belong to it, as written. 0: not stated.
struct MachineOptions {
  std::vector<std::string> probes;  // files
  double network_gbps = 0, link_gb = 0, memory_gb = 0;
  int64_t gpus_per_node = 0;
};

// The node that the probes measured. `gpu`: the list of --gpu, which may only name the same. Throws Error.
planner::ProbedMachine read_machine_option(const MachineOptions& options, const std::vector<std::string>& gpu,
                                           const planner::ParameterSet& parameters);

// Throws Error for options that only --machine has a use for.
void require_no_machine_options(const MachineOptions& options);

}  // namespace tprimat::suite
