#pragma once

#include <cstdint>
#include <vector>

#include "spec/train_spec.h"

namespace tprimat {

// One piece of a pipeline stage's work.
struct PipelineAction {
  enum class Kind { forward, backward } kind = Kind::forward;
  int chunk = 0;  // of the stage's VP chunks
  int64_t micro = 0;
  bool operator==(const PipelineAction&) const = default;
};

// The order of a stage's work on `micro_batches`: one forward, one backward (1F1B, PipeDream-flush), and with VP > 1
// its interleaved form, both as in Megatron-LM (Narayanan et al., arXiv 2104.04473, sections 2.2 and 5). The
// interleaved form needs a number of micro batches that PP divides (CHECKed; check_train_spec says so to people).
std::vector<PipelineAction> pipeline_schedule(const ParallelSpec& layout, int stage, int64_t micro_batches);

// How many micro batches of each chunk are under way at most: forward done or begun, backward not ended.
std::vector<int64_t> micro_batches_under_way(const std::vector<PipelineAction>& schedule, int64_t chunks);

}  // namespace tprimat
