#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trace/operation_table.h"
#include "why/replay_graph.h"

namespace tprimat::results {

// The steps of a pipeline as a graph: each worker's operations in the order in which its streams executed them, sends
// matched with receives by micro-batch and chunk, collectives by group. Method: Lin et al., "Understanding Stragglers
// in Large Model Training Using What-if Analysis", OSDI 2025, section 3.
struct PipelineReplay {
  std::vector<logs::WorkerOperation> operations;  // as read; all vectors below have their order
  ReplayGraph graph;
  std::vector<double> durations;  // without waiting: of a collective or a message, from the last begin to its end
  std::vector<double> delays;     // from the end of what it waits for to its begin: host, data loading
  std::vector<int64_t> steps;     // ascending
  std::vector<double> measured;   // seconds of each step, from its first begin to its last end
  int32_t dp_ranks = 1, stages = 1;
};

bool is_compute(logs::OperationKind kind);  // forward or backward

// Whether the operation takes part in a transfer with other workers: its duration holds waiting.
bool is_communication(logs::OperationKind kind);

// Throws Error where sends and receives do not match, or operations of a worker are missing.
PipelineReplay make_pipeline_replay(std::vector<logs::WorkerOperation> operations, std::string_view where);

// Seconds of each step of `pipeline.steps`.
std::vector<double> replay_steps(const PipelineReplay& pipeline, std::span<const double> durations,
                                 std::span<const double> delays = {});

}  // namespace tprimat::results
