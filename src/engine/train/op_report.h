#pragma once

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

}  // namespace tprimat::engine
