#pragma once

#include "planner/published_workload.h"

namespace tprimat::planner {

// Reads the row's figure of memory, and says what it counts. The machine and the program are read already.
void read_memory(PublishedWorkload& read, const PublishedRow& row);

// What the row's program keeps, where that is not what its family does.
void read_memory_settings(PublishedWorkload& read, const PublishedRow& row);

}  // namespace tprimat::planner
