#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/step_record.h"

namespace tprimat::suite {

// Where a run stands. What is not known is absent.
struct Progress {
  int64_t step = 0, steps = 0;
  double elapsed_seconds = 0.0;
  std::optional<double> remaining_seconds, tokens_per_second, loss, memory_bytes, power_watts;
  std::optional<double> late_seconds = {};  // since the last step, once the next one is overdue
};

// From the steps so far: rates are those of the last ten steps, without the first step of the run when there are
// others.
Progress measure_progress(const std::vector<StepRecord>& done, int64_t steps, int64_t tokens_per_step);

// "35 s", "2 min 05 s": how long one has been waiting.
std::string format_wait(double seconds);

// "step 12/100  ETA 1 min 05 s  13 400 tokens/s  loss 4.812  2.10 GB  212 W"
std::string render_progress_line(const Progress& progress);

// The same behind a bar, in at most `width` columns.
std::string render_progress_bar(const Progress& progress, size_t width);

}  // namespace tprimat::suite
