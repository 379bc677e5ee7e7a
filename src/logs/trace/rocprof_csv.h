#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

struct NamedText {
  std::string where;
  std::string_view text;
};

// Tables that `rocprofv3 --output-format csv` writes: *_kernel_trace.csv, *_memory_copy_trace.csv,
// *_marker_api_trace.csv, *_hip_api_trace.csv, *_rccl_api_trace.csv and *_agent_info.csv of one process, each
// recognised by its columns. Throws Error with the row for one that does not fit its header.
bool is_rocprof_csv(std::string_view text);
Trace read_rocprof_csv(const std::vector<NamedText>& tables, TraceContent content);

// The tables of the process that wrote this one, or of each process of a folder, by name; empty where there are none.
std::vector<std::vector<std::filesystem::path>> find_rocprof_csv(const std::filesystem::path& file_or_folder);

}  // namespace tprimat::logs
