#pragma once

#include <vector>

#include "trace/trace_summary.h"
#include "trace/workbook.h"

namespace tprimat::logs {

// Reads a TraceLens performance report: one entry per rank and sheet with a table of "type" and "time ms"
// (gpu_timeline), and the kernels of kernel_summary. Empty for a workbook that has neither.
std::vector<DeviceSummary> read_tracelens_report(const Workbook& workbook);

}  // namespace tprimat::logs
