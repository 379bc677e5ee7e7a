#pragma once

#include <string>
#include <vector>

#include "planner/search.h"

namespace tprimat::planner {

// Why `best` is the fastest layout, in sentences from the estimates. Each choice is held against the fastest layout
// that chose otherwise, all else chosen anew; before these come choices that would be faster with all else alike, and
// do not fit. What makes less than 1 % of a step is no reason. The weightiest come first, at most `most`.
std::vector<std::string> explain_choice(const PlanRequest& request, const ParameterSet& parameters,
                                        const RankedLayout& best, size_t most);

}  // namespace tprimat::planner
