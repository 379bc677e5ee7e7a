#pragma once

#include <string>
#include <vector>

#include "planner/own_results.h"

namespace tprimat::results {

// What --calibrate and --validate are given: tables of published measurements, and results of runs, in folders or by
// name. What `tprimat probe --json` wrote into such a folder says what its processor achieves.
struct PlanInputs {
  std::vector<std::string> tables;
  std::vector<planner::OwnObservation> results;

  std::vector<planner::Observation> observations() const;  // of the results
};

// Throws Error for a path that does not exist, and for a folder without any result.
PlanInputs sort_plan_inputs(const std::vector<std::string>& paths);

}  // namespace tprimat::results
