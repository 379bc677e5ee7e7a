#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "memory/layer_buffers.h"

namespace tprimat {

// The layers that a rank runs at a time, with one bank of kept activations for each micro batch under way.
struct PlannedChunk {
  ChunkShape shape;
  ChunkBuffers buffers;
  int64_t banks = 1;
  size_t bank_bytes = 0;
  Slot<std::byte> memory;  // of all banks
};

// Weights and gradients: all, or this rank's ZeRO shard, and buffers for the units of other ranks.
struct WeightBuffers {
  static constexpr int k_gathered_units = 3, k_reduced_units = 2;
  int64_t zero_stage = 0;
  int data_size = 1;
  int64_t owned = 0;  // elements that this rank updates
  Slot<Element> weights, gathered;
  Slot<Sum> gradients, reduced, reduced_shares;

  bool splits_gradients() const { return zero_stage >= 2 && data_size > 1; }
  bool splits_weights() const { return zero_stage >= 3 && data_size > 1; }
};

struct OptimizerBuffers {
  Slot<Sum> master, first_moment, second_moment;
  Slot<ShortElement> short_first_moment, short_second_moment;
};

struct BatchBuffers {
  Slot<int32_t> tokens, targets;  // of all micro batches of a step
};

// All memory that one rank of a training ever uses: the engine makes its arena from it and works in its buffers, the
// planner adds them up.
struct TrainingPlan {
  RankShape shape;
  WeightPlan weights;
  ArenaPlan arena;
  SharedBuffers shared;
  std::vector<PlannedChunk> chunks;
  std::array<Slot<Element>, 2> stream_gradients;  // one is computed while the other is sent
  Slot<double> loss;
  WeightBuffers store;
  OptimizerBuffers optimizer;
  BatchBuffers batch;
};
// Throws bad_alloc beyond any machine's memory.
TrainingPlan plan_training(const TrainSpec& spec, const RankPlace& place, const TrainingDevice& device = {});

}  // namespace tprimat
