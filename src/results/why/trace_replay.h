#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"
#include "why/replay_graph.h"

namespace tprimat::results {

// What an operation of a replayed trace is.
enum class ReplayPart : uint8_t {
  products,  // matrix products and convolutions
  attention,
  memory_bound,   // element-wise kernels, norms, reductions, optimizer, copies
  communication,  // the transfer alone
  launch,         // the host, from one launch to the next; without a GPU, time between operations
  data,           // the host waits for input
  wait,           // the host waits for the device: only what this takes beyond the device's work
  other
};

struct ReplayedOperation {
  uint32_t rank = 0;
  ReplayPart part = ReplayPart::other;
  uint32_t name = logs::k_none;    // index into the trace's names
  double flops = 0;                // of a product whose shapes are known
  uint32_t shapes = logs::k_none;  // index into the trace's shapes, of such a product
};

// Recorded steps of one or several ranks as a graph. With a GPU: the host launches one piece of work after the other
// and waits where it synchronised; a kernel begins after its launch, after the one before on its stream, and after the
// kernel of another stream that ended just before it began. Without: the main thread's operations in their order.
// Collectives of several ranks begin when the last rank has come to them. Delays between cause and begin are typical
// ones (medians), not the measured ones, so that the replay can be checked against the measured step.
struct TraceReplay {
  ReplayGraph graph;
  std::vector<ReplayedOperation> operations;
  std::vector<double> durations, delays;  // seconds, by operation
  std::vector<uint32_t> ends;             // the operation that ends each rank's recording
  std::vector<double> steps;              // of each rank
  double measured_seconds = 0;            // mean step, of the slowest rank
};

// Throws Error where a trace has no steps.
TraceReplay make_trace_replay(std::span<const logs::Trace> ranks);

// Mean step with these durations, s.
double replay_step(const TraceReplay& replayed, std::span<const double> durations);

}  // namespace tprimat::results
