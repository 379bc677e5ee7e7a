#include "trace/profile_summary.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "trace/kernel_table.h"
#include "trace/recorded_totals.h"
#include "trace/rocprof_csv.h"
#include "trace/trace_format.h"
#include "trace/tracelens_report.h"

namespace tprimat::logs {
namespace {

bool has_host_marks(const std::vector<DeviceSummary>& devices) {
  for (const DeviceSummary& device : devices)
    if (device.step_marks == "host") return true;
  return false;
}

ProfileFormat profile_format(TraceFormat format) {
  switch (format) {
    case TraceFormat::nsys_export: return ProfileFormat::nsys_export;
    case TraceFormat::rocprof_json:
    case TraceFormat::rocprof_csv:
    case TraceFormat::perfetto_trace: return ProfileFormat::rocprofv3;
    case TraceFormat::chrome_trace: break;
  }
  return ProfileFormat::chrome_trace;
}

// read(content) reads the trace.
template <class Read>
void summarise_events(Read read, std::string_view where, ProfileSummary& summary) {
  const Trace trace = read(TraceContent::gpu);
  if (trace.events.empty()) summary.host = summarise_host(read(TraceContent::host));
  if (!summary.host) summary.devices = summarise_trace(trace, where);
  summary.notes = trace.notes;
  summary.rank = trace.rank;
  summary.world_size = trace.world_size;
  summary.events = trace.all_events;
  summary.gpu_events = static_cast<int64_t>(trace.events.size());
  if (!trace.device_names.empty()) summary.visible_gpus = static_cast<int64_t>(trace.device_names.size());
  if (trace.unusable_events > 0)
    summary.notes.push_back(
        fmt::format("{} GPU events without a start or a duration are ignored", trace.unusable_events));
  if (has_host_marks(summary.devices))
    summary.notes.push_back(
        "steps are marked on the host only: work that runs after its step's mark ends is not counted in that step");
}

void summarise_workbook(const Workbook& workbook, ProfileSummary& summary) {
  summary.devices = read_tracelens_report(workbook);
  for (const Sheet& sheet : workbook.sheets) summary.sheets.push_back({sheet.name, sheet.rows, sheet.columns});
  summary.format = summary.devices.empty() ? ProfileFormat::workbook : ProfileFormat::tracelens_report;
  summary.notes.push_back(summary.devices.empty()
                              ? "this is not a TraceLens report: no sheet has a GPU timeline or a kernel summary"
                              : "TraceLens counts fills (memset) with compute, not with copies");
}

void summarise_kernel_table(std::string_view bytes, std::string_view where, ProfileSummary& summary) {
  summary.format = ProfileFormat::kernel_table;
  summary.devices = {read_kernel_table(bytes, where)};
  summary.notes.push_back("a table of kernels has no time stamps: busy, idle and exposed time are not known");
}

template <class Read>
void summarise_bytes(std::string_view bytes, std::string_view where, Read read, ProfileSummary& summary) {
  if (bytes.starts_with("PK")) return summarise_workbook(read_workbook(bytes, where), summary);
  if (is_kernel_table(bytes)) return summarise_kernel_table(bytes, where, summary);
  summary.format = profile_format(find_trace_format(bytes, where));
  summarise_events(read, where, summary);
}

}  // namespace

ProfileSummary summarise_profile(std::string_view bytes, std::string_view where) {
  if (bytes.empty()) throw Error(Problem{"is empty", std::string(where), ""});
  ProfileSummary summary;
  summary.file = where;
  summarise_bytes(
      bytes, where, [&](TraceContent content) { return read_trace(bytes, where, content); }, summary);
  return summary;
}

namespace {

ProfileSummary summarise_folder(const std::filesystem::path& folder) {
  ProfileSummary summary;
  summary.file = folder.string();
  if (is_tracelens_folder(folder)) {
    summarise_workbook(read_tracelens_folder(folder), summary);
    return summary;
  }
  if (find_rocprof_csv(folder).empty())
    throw Error(Problem{"is a folder without tables of rocprofv3 (*_kernel_trace.csv) or TraceLens (gpu_timeline.csv)",
                        folder.string(), "give a trace, or the folder of such tables"});
  summary.format = ProfileFormat::rocprofv3;
  summarise_events([&](TraceContent content) { return read_trace(folder, content); }, folder.string(), summary);
  return summary;
}

}  // namespace

ProfileSummary summarise_profile(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return summarise_folder(path);
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.empty()) throw Error(Problem{"is empty", path.string(), ""});
  ProfileSummary summary;
  summary.file = path.string();
  summarise_bytes(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
      [&](TraceContent content) { return read_trace(path, content); }, summary);
  return summary;
}

}  // namespace tprimat::logs
