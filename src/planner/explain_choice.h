#pragma once

#include <string>
#include <vector>

#include "planner/search.h"

namespace tprimat {

// Why `best` is the fastest layout: sentences that hold it against its neighbours, which differ in one size alone (and
// in what must follow from it), from the estimates of both. The weightiest come first: neighbours that do not fit, then
// those that are much slower. At most `most`.
std::vector<std::string> explain_choice(const PlanRequest& request, const ParameterSet& parameters,
                                        const RankedLayout& best, size_t most);

}  // namespace tprimat
