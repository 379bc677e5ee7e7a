#pragma once

#include "planner/step_time.h"

namespace tprimat::planner {

// Adds to a layer's time what its routed experts take on one rank, for one micro-batch.
//
// Of T tokens of a micro-batch on the rank (T = MBS·SL / (CP·TP) with sequence parallelism), each goes to k experts:
// the rank's own take T·k·L copies. L is the load of the fullest rank, for which the others wait. An expert's products
// have T·k·L / (experts on the rank) rows; few rows read its weights for little work, which time_product() counts.
// The ETP ranks of an expert each take all of its copies at a share of its inner width.
//
// Exchanges of tokens: there and back in each pass. A copy stays on the rank with probability 1/EP. Of N domains of
// fast links that hold an EP group, a plain all-to-all sends each copy for another domain over the network; a fused one
// (DeepEP, HybridEP) sends a token once to each domain that it needs, (N - 1)(1 - (1 - 1/N)^k) of them on average, no
// more than the groups that its router may choose (arXiv 2412.19437, section 3.2.2), and goes on from there.
void add_experts(LayerTime& layer, const Workload& workload, const Machine& machine, const Rates& rates);

// Load of the fullest rank's experts over the mean: as stated, or where a router chooses and nobody states it,
// 1 + learned_load · log8(EP); never more than the experts' capacity, nor all.
double felt_load(const Workload& workload, const Rates& rates);

}  // namespace tprimat::planner
