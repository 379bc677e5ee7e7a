#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "trace/trace.h"

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

// As read_trace(), one for each process: a report of Nsight Systems can hold several, and so can a folder of
// rocprofv3's tables. By the number of the process, which says nothing about its rank.
std::vector<Trace> read_process_traces(const std::filesystem::path& file_or_folder, TraceContent content);

}  // namespace tprimat::logs
