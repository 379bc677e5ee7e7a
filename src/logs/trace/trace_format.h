#pragma once

#include <cstdint>
#include <string_view>

namespace tprimat::logs {

enum class TraceFormat : uint8_t {
  chrome_trace,    // of the PyTorch profiler or of our own trainer
  nsys_export,     // Nsight Systems' report in SQLite
  rocprof_json,    // results of rocprofv3 in JSON,
  rocprof_csv,     // in tables,
  perfetto_trace,  // and in Perfetto's format
};

// By the first bytes, plain or packed; whatever is none of the others is taken for a Chrome trace.
TraceFormat find_trace_format(std::string_view bytes, std::string_view where);

}  // namespace tprimat::logs
