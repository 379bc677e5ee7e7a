#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace tprimat::results {

// A recorded step. The windows follow each other without overlap; together they hold all work launched in steps.
struct StepWindow {
  int64_t step = 0;
  logs::Span span;     // from the begin of its mark to the end of what it launched, or to the next mark
  int64_t length = 0;  // ns, of the mark: what the step took
};

// The GPU that works most; absent: the trace has no work of a GPU.
std::optional<int32_t> busiest_device(const logs::Trace& trace);

// By the program's own marks; without these by those of the device, and without these as they repeat. Throws Error
// where there are no steps, and where marks overlap.
std::vector<StepWindow> find_windows(const logs::Trace& trace, std::optional<int32_t> device, std::string_view where);

}  // namespace tprimat::results
