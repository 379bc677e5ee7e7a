#pragma once

#include <string>

#include "planner/search.h"

namespace tprimat::planner {

// Where --framework names one that `tprimat run` starts: only layouts that its launcher takes (src/suite/launch). Other
// programs keep all that they can do.
void keep_to_launcher(PlanRequest& request, const std::string& framework);

}  // namespace tprimat::planner
