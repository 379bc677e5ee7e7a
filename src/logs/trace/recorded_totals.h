#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "trace/trace_summary.h"
#include "trace/workbook.h"

namespace tprimat::logs {

// All calls of one collective with as many bytes.
struct CollectiveTotal {
  CollectiveCall call;
  int64_t calls = 0;
  double total_seconds = 0.0;  // a collective's time includes its waiting for other ranks
};

// All calls of an operation, or of one with inputs of these shapes.
struct OperationTotal {
  std::string name, shapes;
  int64_t calls = 0;
  double total_seconds = 0.0;  // of its kernels
};

// What a report states of a whole recording, without times of single events. Each list is longest first.
struct RecordedTotals {
  Timeline timeline;  // compute + exposed communication + exposed copies + idle = span
  std::vector<KernelTotal> kernels;
  std::vector<CollectiveTotal> collectives;
  std::vector<OperationTotal> operations;         // by name
  std::vector<OperationTotal> operations_shaped;  // products, attention and convolutions by shapes
};

// A TraceLens report of one rank: its workbook, or a folder of its CSV files (gpu_timeline.csv, kernel_summary.csv,
// coll_analysis.csv, ops_summary.csv, GEMM.csv, SDPA_fwd.csv, ...). Throws Error with the place for a damaged report,
// for one of several ranks, and for one whose parts do not add up to its total.
bool is_tracelens_folder(const std::filesystem::path& folder);
RecordedTotals read_recorded_totals(const std::filesystem::path& file_or_folder);
RecordedTotals read_recorded_totals(const Workbook& report, std::string_view where);

// The CSV files of a report as the sheets of its workbook.
Workbook read_tracelens_folder(const std::filesystem::path& folder);
void add_csv_sheet(Workbook& workbook, std::string name, std::string_view csv);

}  // namespace tprimat::logs
