#pragma once

#include <string>
#include <vector>

#include "planner/own_results.h"

namespace tprimat {

// What --calibrate and --validate are given: tables of published measurements, and results of runs, in folders or by
// name. What `tprimat probe --json` wrote into such a folder says what its processor achieves.
struct PlanInputs {
  std::vector<std::string> tables;
  std::vector<OwnObservation> results;

  std::vector<Observation> observations() const;  // of the results
};

// Throws Error for a path that does not exist, and for a folder without any result.
PlanInputs sort_plan_inputs(const std::vector<std::string>& paths);

// "cpu": the processor that this runs on, measured now, for a few seconds. Throws Error.
inline bool is_this_processor(const std::string& name) { return name == "cpu"; }
Machine measure_processor();

// Our own trainer runs on processors, and no other program is known there. Throws Error.
void require_trainer_of(const Machine& machine, const Family& family);

}  // namespace tprimat
