#pragma once

namespace tprimat {

// Where a rank stands in a layout. Order as in Megatron-LM ("tp-cp-ep-dp-pp"): tensor-parallel ranks are neighbours,
// then context, then data, then pipeline:  rank = tp + TP·(cp + CP·(dp + DP·pp)).
struct RankPlace {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
};

}  // namespace tprimat
