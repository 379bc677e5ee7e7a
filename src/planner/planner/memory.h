#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/parameters.h"
#include "planner/workload.h"

namespace tprimat::planner {

struct MemoryPart {
  std::string name;
  double bytes = 0;
};

// Bytes on the GPU of the pipeline stage that needs most: the first or second, which keep the most micro-batches, or
// the last, which has the scores.
struct MemoryEstimate {
  double weights = 0;         // as products use them, 2 bytes each
  double gradients = 0;       // 4 bytes where the program sums in fp32, else 2
  double master_weights = 0;  // 4 bytes each
  double moments = 0;         // Adam's two, 4 bytes each
  double activations = 0;     // kept from forward to backward, all layers and micro-batches in flight
  double logits = 0;          // scores of one micro-batch, their fp32 form and gradient, on the stage that has the head
  double gathered = 0;        // weights of other ranks that are present for a while (fully sharded)
  double buffers = 0;         // exchange buffers, kernels' workspaces, the framework's own
  double slack = 0;           // what the allocator holds beyond what it gave away

  double total() const;  // bytes
  std::vector<MemoryPart> parts() const;
};
MemoryEstimate estimate_memory(const Workload& workload, const ParameterSet& parameters);

// Bytes that one layer keeps of one micro-batch on one rank, by arXiv 2205.05198, equations 1 to 4, for the GPT that
// the paper counts: s b h (34 + 5 a s / h) / t with sequence parallelism; and by the same bookkeeping for gated MLPs,
// grouped keys and fused attention. Without dropout no masks are kept.
double layer_activation_bytes(const Workload& workload);

}  // namespace tprimat::planner
