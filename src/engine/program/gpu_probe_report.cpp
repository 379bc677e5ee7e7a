#include "program/gpu_probe_report.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat::engine {
namespace {

std::string share_or_blank(double part, const std::optional<double>& whole) {
  return whole ? format_percent(part / *whole) : "";
}

std::string format_device_noise(const DeviceMeasured& measured) {
  return format_percent(measured.relative_noise) + (measured.ended_by == EndedBy::time ? " *" : "  ");
}

std::string render_products(const GpuProbeReport& report) {
  TextTable table{{"probe", "product", "pass", "m x n x k", "rate", "of catalogue", "noise"}, {}, {4, 5, 6}};
  for (const GpuPeak& peak : report.matmul)
    for (const GpuRate& rate : peak.products)
      table.rows.push_back(
          {fmt::format("{} matmul", enum_name(peak.precision)), rate.name, std::string(enum_name(rate.pass)),
           fmt::format("{} x {} x {}", rate.m, rate.n, rate.k), format_si(rate.flops_per_second, "FLOP/s"),
           share_or_blank(rate.flops_per_second, peak.catalogue_flops), format_device_noise(rate.measured)});
  for (const Precision precision : report.no_kernels)
    table.rows.push_back({fmt::format("{} matmul", enum_name(precision)), "no kernels", "", "", "", "", ""});
  return render_text(table);
}

std::string describe_conditions(const GpuConditions& conditions) {
  std::vector<std::string> parts;
  if (conditions.clock_hz) parts.push_back(fmt::format("{:.0f} MHz", *conditions.clock_hz / 1e6));
  if (conditions.power_watts) parts.push_back(fmt::format("{:.0f} W", *conditions.power_watts));
  if (conditions.temperature_celsius)
    parts.push_back(fmt::format("{:.0f} degrees Celsius", *conditions.temperature_celsius));
  return parts.empty() ? "" : fmt::format(", at {}", join(parts, ", "));
}

std::string render_peaks(const GpuProbeReport& report) {
  std::string text;
  for (const GpuPeak& peak : report.matmul) {
    text += fmt::format("{} matmul: {}", enum_name(peak.precision), format_si(peak.flops_per_second, "FLOP/s"));
    if (peak.catalogue_flops)
      text += fmt::format(", {} of the catalogue's {}", format_percent(peak.flops_per_second / *peak.catalogue_flops),
                          format_si(*peak.catalogue_flops, "FLOP/s"));
    text += describe_conditions(peak.conditions) + "\n";
    if (report.model && peak.model_flops_per_second)
      text += fmt::format("  all products in a step of {}: {}\n", *report.model,
                          format_si(*peak.model_flops_per_second, "FLOP/s"));
  }
  return text;
}

std::string render_transfers(const GpuProbeReport& report) {
  TextTable table{{"probe", "kind", "rate", "of catalogue", "noise"}, {}, {2, 3, 4}};
  for (const GpuTransferRate& rate : report.memory) {
    const bool on_gpu = rate.kind == "copy" || rate.kind == "add";
    table.rows.push_back({on_gpu ? "memory" : "host", rate.kind, format_si(rate.bytes_per_second, "B/s"),
                          on_gpu ? share_or_blank(rate.bytes_per_second, report.catalogue_bandwidth) : "",
                          format_device_noise(rate.measured)});
  }
  return table.rows.empty() ? "" : "\n" + render_text(table);
}

std::string render_launch(const std::optional<GpuLaunch>& launch) {
  if (!launch) return "";
  return fmt::format("\nsmall operations: {} each on the host, {} each on the GPU, {} each replayed from a graph\n",
                     format_duration(launch->given_seconds), format_duration(launch->done_seconds),
                     format_duration(launch->recorded_seconds));
}

}  // namespace

std::string render_gpu_probe(const GpuProbeReport& report) {
  const std::string part = report.part ? fmt::format("{} ({})", report.gpu, *report.part)
                                       : fmt::format("{} (not in the hardware catalogue)", report.gpu);
  return fmt::format(
      "{}\n\n{}\n{}{}{}\nrates: median window; noise: scaled median deviation of the windows, * the time "
      "limit was reached before they agreed\n",
      part, render_products(report), render_peaks(report), render_transfers(report), render_launch(report.launch));
}

std::vector<std::string> list_disturbances(const GpuProbeReport& report) {
  std::vector<std::string> list;
  for (const GpuPeak& peak : report.matmul)
    for (const GpuRate& rate : peak.products)
      if (rate.measured.slowed)
        list.push_back(
            fmt::format("{} {} {} x {} x {}: over 5 % slower in the second half of the measurement (a lower clock or "
                        "other load)",
                        enum_name(peak.precision), enum_name(rate.pass), rate.m, rate.n, rate.k));
  return list;
}

}  // namespace tprimat::engine
