#pragma once

#include "planner/published_workload.h"

namespace tprimat::planner {

// The shape that a published row trains, by name, as printed, or from its parameter count; what the row does not print
// is assumed and noted. False where there is none to predict; `read.missing` then says why.
bool read_row_shape(PublishedWorkload& read, const PublishedRow& row);

}  // namespace tprimat::planner
