#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/op_clock.h"

namespace tprimat::engine {

// What TPRIMAT_PROFILE asks of this trainer: "own:11:15:PATH" a trace of its own clock; "cuda:11:15" and "roctx:11:15",
// on a GPU, the window in which Nsight Systems or rocprofv3 records.
struct OpTraceRequest {
  enum class Kind { own, cuda, roctx };
  Kind kind = Kind::own;
  int64_t first_step = 1, last_step = 1;
  std::string path;  // of the own trace: "{rank}" in it stands for the rank's number, else rank 0 alone writes

  bool is_for_every_rank() const { return path.find("{rank}") != std::string::npos; }
  std::string path_of(int rank) const;
};

// Nothing when the variable is not set. Throws Error for an invalid request.
std::optional<OpTraceRequest> op_trace_request();

// A step's stretch of time.
struct StepSpan {
  int64_t step = 0;
  std::chrono::steady_clock::time_point begin, end;
};

struct TracedRank {
  int rank = 0, size = 1;
};

// A Chrome trace with the keys of PyTorch's profiler: every operation with its inputs, work and place in the step, the
// collectives, ranges of micro-batches, a mark for every step. Times count from baseTimeNanoseconds, since 1970.
std::string render_op_trace(const std::vector<OpEvent>& events, const std::vector<StepSpan>& steps, TracedRank rank);

}  // namespace tprimat::engine
