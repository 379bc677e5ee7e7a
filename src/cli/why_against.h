#pragma once

#include <string>

#include "planner/parameters.h"
#include "why/make_ledger.h"

namespace tprimat::cli {

enum class Expectation {
  planner,  // what the planner predicts of the run's own settings
  roofline  // the same work at the hardware's peaks: every FLOP and byte, nothing else
};

// One result, side B, against what is expected of it, side A. Throws Error where the result says too little to predict
// it, or has no profile.
results::Ledger explain_against(const results::SideInput& side, Expectation expectation,
                                const planner::ParameterSet& parameters);

}  // namespace tprimat::cli
