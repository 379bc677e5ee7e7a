#pragma once

#include "planner/workload.h"

namespace tprimat::planner {

// Parameters that lie on one rank, before data-parallel ranks split them: those of the pipeline stage that has most.
double heaviest_rank_weights(const Workload& workload);

// Those of one stage.
double stage_weights(const Workload& workload, int64_t stage);

// Of one layer, split over no rank.
double layer_weights(const ModelSpec& model);

}  // namespace tprimat::planner
