#pragma once

#include <cstdint>
#include <vector>

namespace tprimat::planner {

// What a rank spends on one micro-batch in one chunk of the model. A schedule that delays the gradients of weights
// (zero-bubble) takes them out of the backward pass.
struct ChunkSeconds {
  double forward = 0;
  double backward = 0;  // with respect to inputs, and recomputation
  double weights = 0;   // with respect to weights
  double total() const { return forward + backward + weights; }
};

// A pipeline of `stages` ranks, each with `chunks` pieces of the model.
struct Pipeline {
  int64_t stages = 1;
  int64_t chunks = 1;
  double micro_batches = 1;  // a fraction where a table's figures do not divide
  bool delays_weights = false;
};

// Seconds from the first forward pass to the last backward pass. Every rank works through the list of actions that
// pipeline_schedule() gives it, 1F1B or its interleaved form (arXiv 2104.04473, sections 2.2 and 5), and waits for what
// it needs from other ranks; transfers take no time here. With delays_weights the gradients of weights fill the time in
// which a rank waits, and the rest follows at the end, as in ZB-H1 (arXiv 2401.10241, section 2.2). Beyond the rounds
// in which a pipeline settles, each further micro-batch adds the time of the busiest rank. A pipeline of more than four
// million actions is taken at least_seconds().
// `places` holds one entry for each chunk of the model in its order: place = chunk * stages + stage.
double simulate_pipeline(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places);

// No schedule is faster.
double least_seconds(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places);

// Seconds that the busiest rank works on one micro-batch.
double busiest_rank_seconds(const Pipeline& pipeline, const std::vector<ChunkSeconds>& places);

}  // namespace tprimat::planner
