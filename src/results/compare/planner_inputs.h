#pragma once

#include <string>
#include <vector>

#include "planner/own_results.h"

namespace tprimat::results {

// Inputs of --calibrate and --validate: tables of published measurements (`published`: the built-in ones), and results
// of runs, in folders or by name. The output of `tprimat probe --json` in such a folder gives the rates of its
// processor.
struct PlanInputs {
  std::vector<std::string> tables;
  std::vector<planner::OwnObservation> results;

  std::vector<planner::Observation> observations() const;  // of the results
};

// Throws Error for a path that does not exist, and for a folder without any result.
PlanInputs sort_plan_inputs(const std::vector<std::string>& paths);

}  // namespace tprimat::results
