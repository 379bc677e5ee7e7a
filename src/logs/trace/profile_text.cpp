#include <fmt/format.h>

#include <algorithm>

#include "text/format.h"
#include "trace/profile_summary.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_kernels_shown = 15, k_steps_shown = 40;
constexpr size_t k_name_width = 72;

std::string milliseconds(double seconds) { return format_fixed(seconds * 1e3, 3); }
std::string milliseconds(const std::optional<double>& seconds) { return seconds ? milliseconds(*seconds) : "-"; }

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// "void at::native::(anonymous namespace)::foo<...>(int, ...)" -> "foo<...>(int, ...", cut to the width of a column.
std::string short_name(std::string_view full) {
  std::string name = printable(full);
  for (const std::string_view noise : {"void ", "(anonymous namespace)::", "at::native::", "c10::"})
    for (size_t at; (at = name.find(noise)) != std::string::npos;) name.erase(at, noise.size());
  if (code_points(name) <= k_name_width) return name;
  size_t bytes = 0;
  for (size_t shown = 0; bytes < name.size(); ++bytes)
    if ((name[bytes] & 0xC0) != 0x80 && shown++ == k_name_width - 1) break;
  return name.substr(0, bytes) + "\u2026";
}

std::string grouped(int64_t count) {
  return count < 100 ? std::to_string(count) : format_count(static_cast<double>(count));
}

std::string count_of(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string describe_file(const ProfileSummary& summary) {
  std::string text = printable(summary.file) + ": ";
  if (summary.format == ProfileFormat::kernel_table) return text + "table of kernels\n";
  if (summary.format == ProfileFormat::workbook || summary.format == ProfileFormat::tracelens_report)
    return text + (summary.format == ProfileFormat::workbook ? "workbook with " : "TraceLens report with ") +
           count_of(static_cast<int64_t>(summary.sheets.size()), "sheet") + "\n";
  const std::string_view kind = summary.format == ProfileFormat::nsys_export ? "report of Nsight Systems"
                                : summary.format == ProfileFormat::rocprofv3 ? "trace of rocprofv3"
                                                                             : "Chrome trace";
  text += fmt::format("{}, {}, {} of them on GPUs", kind, count_of(summary.events.value_or(0), "event"),
                      grouped(summary.gpu_events.value_or(0)));
  if (summary.rank) text += fmt::format("; rank {}", *summary.rank);
  if (summary.world_size) text += fmt::format(" of {}", *summary.world_size);
  if (summary.visible_gpus) text += fmt::format("; {} visible", count_of(*summary.visible_gpus, "GPU"));
  return text + "\n";
}

std::string describe_device(const DeviceSummary& device) {
  std::vector<std::string> parts;
  if (device.device) parts.push_back(fmt::format("GPU {}", *device.device));
  if (device.rank && !device.device) parts.push_back(fmt::format("rank {}", *device.rank));
  if (device.sheet) parts.push_back("sheet " + printable(*device.sheet));
  if (device.name) parts.push_back(printable(*device.name));
  if (device.kernel_calls && device.kernel_seconds)
    parts.push_back(fmt::format("{}, {} ms in all", count_of(*device.kernel_calls, "kernel"),
                                milliseconds(*device.kernel_seconds)));
  return fmt::format("{}\n", join(parts, ", "));
}

// The four parts that make up the span, then what overlaps.
std::string render_timeline(const Timeline& timeline) {
  TextTable table{{"", "ms", "of span"}, {}, {1, 2}};
  const auto add = [&](std::string label, const std::optional<double>& seconds) {
    if (!seconds) return;
    const bool has_share = timeline.span_seconds && *timeline.span_seconds > 0.0;
    table.rows.push_back(
        {std::move(label), milliseconds(*seconds), has_share ? format_percent(*seconds / *timeline.span_seconds) : ""});
  };
  add("span", timeline.span_seconds);
  add("busy", timeline.busy_seconds);
  add("  compute", timeline.compute_seconds);
  add("  exposed communication", timeline.exposed_communication_seconds);
  add("  exposed copies", timeline.exposed_copy_seconds);
  add("idle", timeline.idle_seconds);
  add("communication, overlapped or not", timeline.communication_seconds);
  add("copies, overlapped or not", timeline.copy_seconds);
  return table.rows.empty() ? "" : render_text(table) + "\n";
}

std::string render_classes(const std::vector<ClassTotal>& classes) {
  if (classes.empty()) return "";
  TextTable table{{"class", "calls", "ms", "share"}, {}, {1, 2, 3}};
  for (const ClassTotal& each : classes)
    table.rows.push_back({std::string(enum_name(each.kernel_class)), grouped(each.calls),
                          milliseconds(each.total_seconds), format_percent(each.share)});
  return render_text(table) + "\n";
}

std::string render_kernels(const std::vector<KernelTotal>& kernels, const std::string& noun) {
  if (kernels.empty()) return "";
  TextTable table{{noun, "class", "calls", "ms", "share"}, {}, {2, 3, 4}};
  for (size_t i = 0; i < std::min(kernels.size(), k_kernels_shown); ++i) {
    const KernelTotal& each = kernels[i];
    table.rows.push_back({short_name(each.name), std::string(enum_name(each.kernel_class)), grouped(each.calls),
                          milliseconds(each.total_seconds), format_percent(each.share)});
  }
  const size_t more = kernels.size() - table.rows.size();
  return render_text(table) + (more > 0 ? fmt::format("and {} more; --json lists all\n", more) : "") + "\n";
}

std::string render_steps(const DeviceSummary& device) {
  if (device.steps.empty()) return "";
  TextTable table{{"step", "span ms", "busy", "idle", "compute", "communication", "exposed of that", "copies"},
                  {},
                  {0, 1, 2, 3, 4, 5, 6, 7}};
  for (size_t i = 0; i < std::min(device.steps.size(), k_steps_shown); ++i) {
    const Timeline& timeline = device.steps[i].timeline;
    table.rows.push_back({std::to_string(device.steps[i].step), milliseconds(timeline.span_seconds),
                          milliseconds(timeline.busy_seconds), milliseconds(timeline.idle_seconds),
                          milliseconds(timeline.compute_seconds), milliseconds(timeline.communication_seconds),
                          milliseconds(timeline.exposed_communication_seconds), milliseconds(timeline.copy_seconds)});
  }
  const size_t more = device.steps.size() - table.rows.size();
  return fmt::format("Steps, as marked on the {}\n{}{}\n", *device.step_marks, render_text(table),
                     more > 0 ? fmt::format("and {} more; --json lists all\n", more) : "");
}

// Where no GPU worked.
std::string render_host(const HostSummary& host) {
  std::string text =
      fmt::format("processor, {}, {}, busy {} of {} ms\n", count_of(host.threads, "thread"),
                  count_of(host.calls, "operation"), milliseconds(host.busy_seconds), milliseconds(host.span_seconds));
  text += render_classes(host.classes) + render_kernels(host.operations, "operation, own time");
  if (host.steps.empty()) return text;
  TextTable table{{"step", "ms", "busy"}, {}, {0, 1, 2}};
  for (size_t i = 0; i < std::min(host.steps.size(), k_steps_shown); ++i)
    table.rows.push_back({std::to_string(host.steps[i].step), milliseconds(host.steps[i].seconds),
                          milliseconds(host.steps[i].busy_seconds)});
  return text + "Steps, as marked on the host; the profiler lengthens them\n" + render_text(table) + "\n";
}

std::string render_sheets(const std::vector<SheetSize>& sheets) {
  if (sheets.empty()) return "";
  TextTable table{{"sheet", "rows", "columns"}, {}, {1, 2}};
  for (const SheetSize& sheet : sheets)
    table.rows.push_back({printable(sheet.name), std::to_string(sheet.rows), std::to_string(sheet.columns)});
  return render_text(table) + "\n";
}

}  // namespace

std::string render_profile(const ProfileSummary& summary) {
  std::string text = describe_file(summary) + "\n";
  text += render_sheets(summary.sheets);
  for (const DeviceSummary& device : summary.devices)
    text += describe_device(device) + render_timeline(device.timeline) + render_classes(device.classes) +
            render_kernels(device.kernels, "kernel") + render_steps(device);
  if (summary.host) text += render_host(*summary.host);
  for (const std::string& note : summary.notes) text += "note: " + printable(note) + "\n";
  text.erase(text.find_last_not_of('\n') + 1);
  return text + "\n";
}

}  // namespace tprimat::logs
