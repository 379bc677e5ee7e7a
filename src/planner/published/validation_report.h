#pragma once

#include <string>
#include <vector>

#include "published/validate.h"

namespace tprimat::planner {

// For a terminal: every figure with its verdict and how it came about, the deviations that were granted, and counts per
// table.
std::string render_validation(const std::vector<TableCheck>& tables);

}  // namespace tprimat::planner
