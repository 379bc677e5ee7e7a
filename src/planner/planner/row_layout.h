#pragma once

#include "planner/published_workload.h"

namespace tprimat::planner {

// How a published row's training was laid out over `gpus`, its machine, program and shape being read; what the row does
// not print is assumed and noted. False where nothing can be said; `read.missing` then says why.
bool read_row_layout(PublishedWorkload& read, const PublishedRow& row, int64_t gpus);

// Global batch and micro-batch, after the layout.
bool read_row_batch(PublishedWorkload& read, const PublishedRow& row);

}  // namespace tprimat::planner
