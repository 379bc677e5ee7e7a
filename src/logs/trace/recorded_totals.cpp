#include "trace/recorded_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "text/csv.h"
#include "trace/kineto_event.h"
#include "trace/tracelens_report.h"

namespace tprimat::logs {
namespace {

constexpr double k_bytes_per_megabyte = 1024.0 * 1024.0;  // of TraceLens
constexpr double k_largest_count = 1e12, k_largest_bytes = 1e15;

// The columns of a sheet by their names.
class SheetColumns {
 public:
  explicit SheetColumns(const Sheet& sheet) {
    if (!sheet.content.empty())
      for (const SheetCell& cell : sheet.content.front().cells) columns_.try_emplace(cell.text, cell.column);
  }
  bool has(std::string_view name) const { return columns_.contains(name); }
  std::string_view text(const SheetRow& row, std::string_view name) const {
    const auto found = columns_.find(name);
    return found != columns_.end() ? cell_text(row, found->second) : std::string_view();
  }
  // Not negative, and not beyond what any report holds.
  std::optional<double> figure(const SheetRow& row, std::string_view name, double largest) const {
    const auto found = columns_.find(name);
    const auto value = found != columns_.end() ? cell_number(row, found->second) : std::nullopt;
    return value && *value >= 0.0 && *value <= largest ? value : std::nullopt;
  }
  std::optional<int64_t> count(const SheetRow& row, std::string_view name) const {
    const auto value = figure(row, name, k_largest_count);
    return value ? std::optional(std::llround(*value)) : std::nullopt;
  }
  std::optional<double> seconds(const SheetRow& row, std::string_view name) const {  // of microseconds
    const auto value = figure(row, name, k_largest_count);
    return value ? std::optional(*value / 1e6) : std::nullopt;
  }

 private:
  std::map<std::string_view, uint32_t> columns_;
};

void read_collectives(const Sheet& sheet, std::map<CollectiveCall, CollectiveTotal>& totals) {
  const SheetColumns columns(sheet);
  if (!columns.has("Collective name") || !columns.has("dur_sum")) return;
  for (const SheetRow& row : sheet.content) {
    const auto seconds = columns.seconds(row, "dur_sum");
    const auto calls = columns.count(row, "operation_count");
    if (!seconds || !calls) continue;
    const std::string_view name = columns.text(row, "Collective name");
    const std::string known = collective_operation(name);
    CollectiveCall call{known.empty() ? std::string(name) : known, std::string(columns.text(row, "Process Group Name")),
                        0, 0};
    call.bytes = std::llround(
        columns.figure(row, "In msg size (MB)_first", k_largest_bytes / k_bytes_per_megabyte).value_or(0.0) *
        k_bytes_per_megabyte);
    call.group_size = columns.count(row, "Group size").value_or(0);
    CollectiveTotal& total = totals[call];
    total.call = call;
    total.calls += *calls;
    total.total_seconds += *seconds;
  }
}

void read_operations(const Sheet& sheet, std::vector<OperationTotal>& operations) {
  const SheetColumns columns(sheet);
  if (!columns.has("name") || !columns.has("total_direct_kernel_time_sum")) return;
  for (const SheetRow& row : sheet.content) {
    const auto seconds = columns.seconds(row, "total_direct_kernel_time_sum");
    const auto calls = columns.count(row, "Count");
    if (seconds && calls) operations.push_back({std::string(columns.text(row, "name")), "", *calls, *seconds});
  }
}

// The backward pass of attention stands under the name of the forward pass, in a sheet of its own.
void read_shaped_operations(const Sheet& sheet, std::vector<OperationTotal>& operations) {
  const SheetColumns columns(sheet);
  constexpr std::string_view k_time = "Kernel Time (\u00b5s)_sum";
  if (!columns.has("Input Dims_first") || !columns.has(k_time)) return;
  for (const SheetRow& row : sheet.content) {
    const auto seconds = columns.seconds(row, k_time);
    const auto calls = columns.count(row, "name_count");
    if (!seconds || !calls) continue;
    std::string types(columns.text(row, "Input type_first"));
    std::replace(types.begin(), types.end(), '\'', '"');
    std::string name(columns.text(row, "name"));
    if (sheet.name.ends_with("_bwd")) name += " backward";
    operations.push_back(
        {std::move(name), describe_shapes(columns.text(row, "Input Dims_first"), types), *calls, *seconds});
  }
}

// Reports are rounded: their sums may differ from the total by a thousandth.
void check_sum(const Timeline& timeline, std::string_view where) {
  if (!timeline.span_seconds || !timeline.compute_seconds || !timeline.idle_seconds)
    throw Error(Problem{"states no total, computation and idle time (gpu_timeline)", std::string(where), ""});
  const double parts = *timeline.compute_seconds + timeline.exposed_communication_seconds.value_or(0.0) +
                       timeline.exposed_copy_seconds.value_or(0.0) + *timeline.idle_seconds;
  if (std::fabs(parts - *timeline.span_seconds) > 1e-3 * *timeline.span_seconds)
    throw Error(Problem{fmt::format("states a total of {:.3f} ms, but its parts add up to {:.3f} ms",
                                    *timeline.span_seconds * 1e3, parts * 1e3),
                        std::string(where), "make the report again"});
}

}  // namespace

void add_csv_sheet(Workbook& workbook, std::string name, std::string_view csv) {
  Sheet sheet;
  sheet.name = std::move(name);
  if (csv.starts_with("\xef\xbb\xbf")) csv.remove_prefix(3);
  while (!csv.empty()) {
    SheetRow row{++sheet.rows, {}};
    uint32_t column = 0;
    for (std::string& cell : take_csv_row(csv)) {
      if (!cell.empty()) row.cells.push_back({column, workbook.texts.emplace_back(std::move(cell))});
      ++column;
    }
    sheet.columns = std::max(sheet.columns, column);
    if (!row.cells.empty()) sheet.content.push_back(std::move(row));
  }
  workbook.sheets.push_back(std::move(sheet));
}

bool is_tracelens_folder(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::exists(folder / "gpu_timeline.csv", error);
}

Workbook read_tracelens_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Workbook workbook;
  for (const auto& file : files) add_csv_sheet(workbook, file.stem().string(), read_file(file));
  return workbook;
}

RecordedTotals read_recorded_totals(const Workbook& report, std::string_view where) {
  const std::vector<DeviceSummary> devices = read_tracelens_report(report);
  const auto timelines = std::count_if(devices.begin(), devices.end(), [](const DeviceSummary& device) {
    return device.timeline.span_seconds.has_value();
  });
  if (timelines != 1)
    throw Error(Problem{fmt::format("holds {} time lines of GPUs, not one", timelines), std::string(where),
                        "give a TraceLens report of one rank"});
  RecordedTotals totals;
  for (const DeviceSummary& device : devices) {
    if (device.timeline.span_seconds) totals.timeline = device.timeline;
    if (totals.kernels.empty()) totals.kernels = device.kernels;
  }
  check_sum(totals.timeline, where);
  std::map<CollectiveCall, CollectiveTotal> collectives;
  for (const Sheet& sheet : report.sheets) {
    read_collectives(sheet, collectives);
    if (totals.operations.empty()) read_operations(sheet, totals.operations);
    read_shaped_operations(sheet, totals.operations_shaped);
  }
  for (const auto& [call, total] : collectives) totals.collectives.push_back(total);
  sort_longest_first(totals.collectives);
  sort_longest_first(totals.operations);
  sort_longest_first(totals.operations_shaped);
  return totals;
}

RecordedTotals read_recorded_totals(const std::filesystem::path& file_or_folder) {
  std::error_code error;
  if (std::filesystem::is_directory(file_or_folder, error))
    return read_recorded_totals(read_tracelens_folder(file_or_folder), file_or_folder.string());
  return read_recorded_totals(read_workbook(read_file(file_or_folder), file_or_folder.string()),
                              file_or_folder.string());
}

}  // namespace tprimat::logs
