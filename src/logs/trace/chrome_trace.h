#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "trace/trace.h"

namespace tprimat::logs {

// Chrome trace of the PyTorch profiler (Kineto) or of our own trainer. JSON, plain or gzip; an object with
// "traceEvents" or the bare array of events. Read as a stream. Throws Error with the byte for text that is not JSON or
// ends early, and for JSON that is not a trace.
// `file`: the bytes are those of this mapped file, which then takes no more memory than what is being read of it.
Trace read_chrome_trace(std::string_view bytes, std::string_view where, TraceContent content = TraceContent::gpu,
                        const MappedFile* file = nullptr);

// "4203669603187.439" microseconds, exactly, in nanoseconds; nothing beyond +-73 years, where sums could overflow.
std::optional<int64_t> parse_microseconds(std::string_view text);

}  // namespace tprimat::logs
