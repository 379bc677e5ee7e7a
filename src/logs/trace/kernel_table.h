#pragma once

#include <string_view>

#include "trace/trace_summary.h"

namespace tprimat::logs {

// CSV of `nsys stats --report cuda_gpu_kern_sum,cuda_gpu_mem_time_sum --format csv` ("Time (%)", "Total Time (ns)",
// "Instances" or "Count", ..., "Name" or "Operation"; several tables may follow each other, with other lines around)
// and of `rocprofv3 --stats` (*_kernel_stats.csv: "Name", "Calls", "TotalDurationNs", ...).
bool is_kernel_table(std::string_view text);

// Kernels of all GPUs together. Throws Error with the line for a row that does not fit its header, and for a table
// without rows.
DeviceSummary read_kernel_table(std::string_view text, std::string_view where);

}  // namespace tprimat::logs
