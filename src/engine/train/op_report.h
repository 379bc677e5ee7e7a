#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "nn/op_clock.h"

namespace tprimat::engine {

// Where the time of some steps went: one line per operation, the longest first.
struct OpLine {
  std::string operation;
  int64_t calls = 0;                       // per step
  double seconds = 0;                      // per step
  double share = 0;                        // of the steps' time
  std::optional<double> flops_per_second;  // of matrix products
  std::optional<double> of_peak;           // flops_per_second ÷ achievable, where that was measured
  std::optional<double> bytes_per_second;  // of operations that memory bounds
};

struct OpReport {
  int64_t steps = 0;
  double step_seconds = 0;                   // mean
  std::optional<double> plain_step_seconds;  // mean of steps without the clock, where there were some
  std::optional<double> achievable_flops;    // FLOP/s, measured in the same process
  std::vector<OpLine> lines;                 // "everything else" comes last
};

// total_seconds: of all `steps` together.
OpReport make_op_report(const OpClock& clock, int64_t steps, double total_seconds,
                        std::optional<double> achievable_flops);
std::string render_op_report(const OpReport& report);

// What TPRIMAT_PROFILE asks of this trainer: "own:11:15:PATH" a trace of its own clock; "cuda:11:15" and "roctx:11:15",
// on a GPU, the window in which Nsight Systems or rocprofv3 records.
struct OpTraceRequest {
  enum class Kind { own, cuda, roctx };
  Kind kind = Kind::own;
  int64_t first_step = 1, last_step = 1;
  std::string path;  // of the own trace
};

// Nothing when the variable is not set. Throws Error for an invalid request.
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
