#pragma once

#include <chrono>
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
  std::string path;  // of the own trace
};

// Nothing when the variable is not set. Throws Error for what is no such request.
std::optional<OpTraceRequest> op_trace_request();

// A step's stretch of time.
struct StepSpan {
  int64_t step = 0;
  std::chrono::steady_clock::time_point begin, end;
};

// A Chrome trace, as the PyTorch profiler writes them: every operation and a mark for every step. Times count from the
// begin of the first step.
std::string render_op_trace(const std::vector<OpEvent>& events, const std::vector<StepSpan>& steps, int world_size);

}  // namespace tprimat::engine
