#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trace/host_summary.h"
#include "trace/trace_summary.h"

namespace tprimat::logs {

enum class ProfileFormat { chrome_trace, kernel_table, nsys_export, rocprofv3, tracelens_report, workbook };

struct SheetSize {
  std::string name;
  int64_t rows = 0, columns = 0;

  static constexpr auto fields() {
    using S = SheetSize;
    return field_list(field("name", &S::name, "of the sheet"), field("rows", &S::rows, "up to the last with a value"),
                      field("columns", &S::columns, "up to the last with a value"));
  }
};

// Summary of a trace or a report.
struct ProfileSummary {
  std::string file;
  ProfileFormat format = ProfileFormat::chrome_trace;
  std::optional<int64_t> rank, world_size, events, gpu_events, visible_gpus;
  std::vector<DeviceSummary> devices;
  std::optional<HostSummary> host;
  std::vector<SheetSize> sheets;
  std::vector<std::string> notes;

  static constexpr auto fields() {
    using P = ProfileSummary;
    return field_list(field("file", &P::file, "path"), field("format", &P::format, "what the file is"),
                      field("rank", &P::rank, "of the process, where the trace tells it"),
                      field("world_size", &P::world_size, "processes of the run, where the trace tells it"),
                      field("events", &P::events, "of the trace, those of the host included"),
                      field("gpu_events", &P::gpu_events, "kernels, memory copies and fills"),
                      field("visible_gpus", &P::visible_gpus, "GPUs that the process saw"),
                      field("devices", &P::devices, "where the time of each GPU went"),
                      field("host", &P::host, "where the processor's time went, where no GPU worked"),
                      field("sheets", &P::sheets, "of a workbook"),
                      field("notes", &P::notes, "what to know before trusting the figures"));
  }
};

// A trace of any format (trace.h), an .xlsx workbook, a table of kernels from nsys or rocprofv3 (CSV), or a folder with
// the tables of rocprofv3 or of TraceLens, recognised by its content. Throws Error with the place for other and for
// damaged files.
ProfileSummary summarise_profile(const std::filesystem::path& path);
ProfileSummary summarise_profile(std::string_view bytes, std::string_view where);

std::string render_profile(const ProfileSummary& summary);  // for a terminal

}  // namespace tprimat::logs
