#pragma once

#include "planner/memory.h"

namespace tprimat::planner {

// Bytes that tprimat's own trainer allocates on the rank that needs most. It reserves every buffer before the first
// step, so this is a count and no fit: of the same plan (memory/training_plan.h). `activations` are those of all
// micro-batches under way, `buffers` the workspace that layers share, `gathered` the buffers of ZeRO's exchanges,
// `slack` the last huge page. FP4, which it does not train in, is a CHECK.
MemoryEstimate plan_native_memory(const Workload& workload);

// The same of the ranks of one pipeline stage, 0 <= stage < PP.
MemoryEstimate plan_native_stage(const Workload& workload, int64_t stage);

// Bytes of all ranks together.
double plan_native_ranks(const Workload& workload);

}  // namespace tprimat::planner
