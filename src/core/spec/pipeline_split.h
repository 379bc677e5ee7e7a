#pragma once

#include <cstdint>

namespace tprimat {

// The layers of one chunk of a model that a pipeline cuts into PP x VP of them.
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
