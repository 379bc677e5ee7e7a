#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "trace/operation_table.h"

namespace tprimat::test {

// A pipeline with one chunk per stage under the schedule "one forward, one backward", without messages: what a stage
// receives is there at once.
struct PipelineShape {
  int32_t stages = 4, micro_batches = 8, dp_ranks = 1;
  int64_t steps = 1;
  // Seconds of a computation.
  std::function<double(const logs::WorkerOperation&)> seconds = [](const logs::WorkerOperation& operation) {
    return operation.kind == logs::OperationKind::forward_compute ? 1.0 : 2.0;
  };
};

// The computations of a stage in their order: as many forward ones ahead as there are stages behind it.
inline std::vector<logs::WorkerOperation> make_stage_order(const PipelineShape& shape, int32_t stage) {
  std::vector<logs::WorkerOperation> order;
  const auto add = [&](logs::OperationKind kind, int32_t micro_batch) {
    logs::WorkerOperation operation;
    operation.stage = stage;
    operation.kind = kind;
    operation.micro_batch = micro_batch;
    order.push_back(operation);
  };
  const int32_t ahead = std::min(shape.stages - 1 - stage, shape.micro_batches);
  for (int32_t i = 0; i < ahead; ++i) add(logs::OperationKind::forward_compute, i);
  for (int32_t i = 0; i < shape.micro_batches; ++i) {
    if (i + ahead < shape.micro_batches) add(logs::OperationKind::forward_compute, i + ahead);
    add(logs::OperationKind::backward_compute, i);
  }
  return order;
}

// Begins as early as possible: repeats "after the one before on this stage, and after what it receives" until nothing
// moves any more. Written without the graph under test.
inline void place_in_time(std::vector<std::vector<logs::WorkerOperation>>& stages) {
  const auto end_of = [&](size_t stage, logs::OperationKind kind, int32_t micro_batch) {
    for (const auto& operation : stages[stage])
      if (operation.kind == kind && operation.micro_batch == micro_batch) return operation.begin + operation.duration;
    return 0.0;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      double free = 0;
      for (auto& operation : stages[stage]) {
        const bool forward = operation.kind == logs::OperationKind::forward_compute;
        double begin = free;
        if (forward && stage > 0) begin = std::max(begin, end_of(stage - 1, operation.kind, operation.micro_batch));
        if (!forward && stage + 1 < stages.size())
          begin = std::max(begin, end_of(stage + 1, operation.kind, operation.micro_batch));
        moved = moved || begin > operation.begin;
        operation.begin = std::max(operation.begin, begin);
        free = operation.begin + operation.duration;
      }
    }
  }
}

inline std::vector<logs::WorkerOperation> make_pipeline(const PipelineShape& shape) {
  std::vector<logs::WorkerOperation> operations;
  for (int64_t step = 0; step < shape.steps; ++step)
    for (int32_t dp_rank = 0; dp_rank < shape.dp_ranks; ++dp_rank) {
      std::vector<std::vector<logs::WorkerOperation>> stages;
      for (int32_t stage = 0; stage < shape.stages; ++stage) {
        stages.push_back(make_stage_order(shape, stage));
        for (auto& operation : stages.back()) {
          operation.step = step;
          operation.dp_rank = dp_rank;
          operation.duration = shape.seconds(operation);
        }
      }
      place_in_time(stages);
      for (const auto& stage : stages) operations.insert(operations.end(), stage.begin(), stage.end());
    }
  return operations;
}

}  // namespace tprimat::test
