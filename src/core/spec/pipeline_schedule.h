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
// interleaved form needs a number of micro batches that PP divides (CHECKed; check_train_spec reports it to the user).
std::vector<PipelineAction> pipeline_schedule(const ParallelSpec& layout, int stage, int64_t micro_batches);

// How many micro batches of each chunk are under way at most: forward done or begun, backward not ended.
std::vector<int64_t> micro_batches_under_way(const std::vector<PipelineAction>& schedule, int64_t chunks);

// The layers of one of the PP x VP chunks of a model.
struct ChunkLayers {
  int64_t first = 0;
  int64_t count = 0;
};

// Chunks get equally many layers, or as nearly equal as the number allows. With `ends_as_layers` the embedding counts
// as a layer of the first chunk and the loss as one of the last, as in Megatron-LM's --account-for-embedding-in-
// pipeline-split and --account-for-loss-in-pipeline-split: Llama 3.1 405B's 126 layers fill 128 places.
inline ChunkLayers split_layers(int64_t num_layers, int64_t chunks, bool ends_as_layers, int64_t place) {
  const int64_t ends = ends_as_layers ? 1 : 0, units = num_layers + 2 * ends;
  const int64_t begin = units * place / chunks, end = units * (place + 1) / chunks;
  const int64_t first = place == 0 ? 0 : begin - ends;
  return {first, (place == chunks - 1 ? end - 2 * ends : end - ends) - first};
}

}  // namespace tprimat
