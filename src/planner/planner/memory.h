#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/layer_memory.h"
#include "planner/parameters.h"
#include "planner/workload.h"

namespace tprimat::planner {

// What a figure of memory counts: tensors at their peak; what the allocator took from the driver for them; or all that
// the driver says is used, with contexts and the communication library's buffers.
enum class MemoryFigure { allocated, reserved, device };

// What a measured figure is of: the stage that needs most, or that of the rank which logs.
enum class MemoryStage { heaviest, first, last };
struct MemoryReading {
  MemoryFigure figure = MemoryFigure::device;
  MemoryStage stage = MemoryStage::heaviest;
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
  double context = 0;         // what driver and libraries take past the allocator

  double total() const;   // bytes
  double needed() const;  // without slack, which an allocator gives back before it runs out
  double bytes(MemoryFigure figure) const;
  double states() const;  // weights, gradients, master weights and moments
  std::vector<std::pair<std::string, double>> parts() const;
};
MemoryEstimate estimate_memory(const Workload& workload, const ParameterSet& parameters);
// The same on a device of so many bytes: slack is no more than what is left.
MemoryEstimate estimate_memory_within(const Workload& workload, const ParameterSet& parameters, double bytes);

// Copies of tokens on the fullest rank over the mean, all layers together: as stated, or 1 + learned_memory log8(EP)
// where a router chooses; never more than the experts' capacity, nor all. 0 for a dense model.
double kept_load(const Workload& workload, const ParameterSet& parameters);
MemoryEstimate estimate_stage_memory(const Workload& workload, const ParameterSet& parameters, int64_t stage);
double predict_bytes(const Workload& workload, const ParameterSet& parameters, const MemoryReading& reading);

// Bytes that tprimat's own trainer allocates on the rank that needs most. It reserves every buffer before the first
// step, so this is a count and no fit: of the same plan (memory/training_plan.h). `activations` are those of all
// micro-batches under way, `buffers` the workspace that layers share, `gathered` the buffers of ZeRO's exchanges,
// `slack` the last huge page. FP4, which it does not train in, is a CHECK.
MemoryEstimate plan_native_memory(const Workload& workload);
MemoryEstimate plan_native_stage(const Workload& workload, int64_t stage);  // the ranks of one stage, 0 <= stage < PP
double plan_native_ranks(const Workload& workload);                         // bytes of all ranks together

}  // namespace tprimat::planner
