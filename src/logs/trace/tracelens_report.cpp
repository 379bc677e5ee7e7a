#include "trace/tracelens_report.h"

#include <algorithm>
#include <map>

namespace tprimat::logs {
namespace {

using Figure = std::optional<double> Timeline::*;

// Rows of gpu_timeline, in ms. Fills count with compute there.
struct TimelineRow {
  std::string_view type;
  Figure figure;
};
constexpr TimelineRow k_timeline_rows[] = {
    {"total_time", &Timeline::span_seconds},
    {"busy_time", &Timeline::busy_seconds},
    {"idle_time", &Timeline::idle_seconds},
    {"computation_time", &Timeline::compute_seconds},
    {"total_comm_time", &Timeline::communication_seconds},
    {"exposed_comm_time", &Timeline::exposed_communication_seconds},
    {"total_memcpy_time", &Timeline::copy_seconds},
    {"exposed_memcpy_time", &Timeline::exposed_copy_seconds},
};

std::optional<uint32_t> find_heading_if(const Sheet& sheet, auto&& fits) {
  if (sheet.content.empty()) return std::nullopt;
  for (const SheetCell& cell : sheet.content.front().cells)
    if (fits(cell.text)) return cell.column;
  return std::nullopt;
}

std::optional<uint32_t> find_heading(const Sheet& sheet, std::string_view name) {
  return find_heading_if(sheet, [&](std::string_view text) { return text == name; });
}

void read_timeline(const Sheet& sheet, std::vector<DeviceSummary>& devices) {
  const auto type = find_heading(sheet, "type"), time = find_heading(sheet, "time ms");
  const auto rank = find_heading(sheet, "rank");
  if (!type || !time) return;
  std::map<std::optional<int64_t>, DeviceSummary> by_rank;
  for (const SheetRow& row : sheet.content) {
    const auto known = std::find_if(std::begin(k_timeline_rows), std::end(k_timeline_rows),
                                    [&](const auto& each) { return each.type == cell_text(row, *type); });
    const auto milliseconds = cell_number(row, *time);
    if (known == std::end(k_timeline_rows) || !milliseconds) continue;
    const auto number = rank ? cell_number(row, *rank) : std::nullopt;
    const bool is_rank = number && *number >= 0 && *number < 1e9;
    DeviceSummary& device = by_rank[is_rank ? std::optional(static_cast<int64_t>(*number)) : std::nullopt];
    device.timeline.*known->figure = *milliseconds / 1e3;
  }
  for (auto& [number, device] : by_rank) {
    device.rank = number;
    device.sheet = sheet.name;
    devices.push_back(std::move(device));
  }
}

// Streams and parent operations have rows of their own there; a kernel is one here.
std::map<std::string, KernelTotal> read_kernels(const Sheet& sheet) {
  const auto name = find_heading(sheet, "Kernel name");
  const auto is_duration = [](std::string_view text, std::string_view end) {
    return text.starts_with("Kernel duration (") && text.ends_with(end);  // in microseconds
  };
  const auto sum = find_heading_if(sheet, [&](std::string_view text) { return is_duration(text, "_sum"); });
  const auto count = find_heading_if(sheet, [&](std::string_view text) { return is_duration(text, "_count"); });
  std::map<std::string, KernelTotal> kernels;
  if (!name || !sum || !count) return kernels;
  for (const SheetRow& row : sheet.content) {
    const auto microseconds = cell_number(row, *sum), calls = cell_number(row, *count);
    if (!microseconds || !calls || *calls < 0 || *calls > 1e12) continue;
    KernelTotal& kernel = kernels[std::string(cell_text(row, *name))];
    kernel.calls += static_cast<int64_t>(*calls);
    kernel.total_seconds += *microseconds / 1e6;
  }
  return kernels;
}

void add_kernels(const std::map<std::string, KernelTotal>& totals, DeviceSummary& device) {
  std::vector<KernelTotal> kernels;
  double kernel_seconds = 0.0;
  int64_t kernel_calls = 0;
  for (const auto& [name, total] : totals) {
    kernels.push_back({name, classify_kernel(name), total.calls, total.total_seconds, 0.0});
    if (name.starts_with("Memcpy ") || name.starts_with("Memset ")) continue;
    kernel_calls += total.calls;
    kernel_seconds += total.total_seconds;
  }
  set_kernels(device, std::move(kernels));
  device.kernel_calls = kernel_calls;
  device.kernel_seconds = kernel_seconds;
}

}  // namespace

std::vector<DeviceSummary> read_tracelens_report(const Workbook& workbook) {
  std::vector<DeviceSummary> devices;
  for (const Sheet& sheet : workbook.sheets) read_timeline(sheet, devices);
  for (const Sheet& sheet : workbook.sheets) {
    const auto kernels = read_kernels(sheet);
    if (kernels.empty()) continue;
    const bool of_the_one_timeline = devices.size() == 1 && devices.front().kernels.empty();
    if (!of_the_one_timeline) devices.emplace_back().sheet = sheet.name;
    add_kernels(kernels, of_the_one_timeline ? devices.front() : devices.back());
  }
  return devices;
}

}  // namespace tprimat::logs
