#pragma once

#include <string_view>

#include "base/files.h"
#include "trace/trace.h"

namespace tprimat::logs {

// Whether the text begins as `rocprofv3 --output-format json` begins its results.
bool is_rocprof_json(std::string_view head);

// Results of rocprofv3, plain or packed, read as a stream: kernel dispatches, memory copies, calls of HIP and RCCL,
// ROCTX ranges, names of the GPUs. GPUs are numbered from 0 as the system lists them. Throws Error with the byte for
// text that is not JSON or ends early.
// `file`: as of read_chrome_trace.
Trace read_rocprof_json(std::string_view bytes, std::string_view where, TraceContent content,
                        const MappedFile* file = nullptr);

}  // namespace tprimat::logs
