#pragma once

#include <string_view>

#include "trace/trace.h"

namespace tprimat::logs {

// A Perfetto trace (.pftrace) as `rocprofv3 --output-format pftrace` writes it: slices of the categories
// kernel_dispatch, memory_copy, hip_api, rccl_api and marker_api, with their times, agent, queue and correlation as
// annotations. Other traces of Perfetto have no such annotations: their slices are counted as unusable.
bool is_perfetto_trace(std::string_view bytes);

// Throws Error with the byte for damaged or truncated data.
Trace read_perfetto_trace(std::string_view bytes, std::string_view where, TraceContent content);

}  // namespace tprimat::logs
