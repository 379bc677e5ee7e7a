#include "train/op_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tprimat::engine {
namespace {

OpLine make_line(const std::string& name, const OpTotal& total, const OpReport& report) {
  const double steps = static_cast<double>(report.steps);
  OpLine line{
      name, total.calls / report.steps, total.seconds / steps, total.seconds / steps / report.step_seconds, {}, {}, {}};
  if (total.seconds <= 0) return line;
  if (total.flops > 0) {
    line.flops_per_second = total.flops / total.seconds;
    if (report.achievable_flops) line.of_peak = *line.flops_per_second / *report.achievable_flops;
  } else if (total.bytes > 0) {
    line.bytes_per_second = total.bytes / total.seconds;
  }
  return line;
}

std::string cell(const std::optional<double>& value, double unit, const char* suffix) {
  return value ? fmt::format("{:.1f}{}", *value / unit, suffix) : "";
}

}  // namespace

OpReport make_op_report(const OpClock& clock, int64_t steps, double total_seconds,
                        std::optional<double> achievable_flops) {
  OpReport report;
  report.steps = steps;
  report.step_seconds = total_seconds / static_cast<double>(steps);
  report.achievable_flops = achievable_flops;
  OpTotal rest{0, total_seconds, 0, 0};
  for (const auto& [name, total] : clock.totals()) {
    report.lines.push_back(make_line(name, total, report));
    rest.seconds -= total.seconds;
  }
  std::stable_sort(report.lines.begin(), report.lines.end(),
                   [](const OpLine& a, const OpLine& b) { return a.seconds > b.seconds; });
  report.lines.push_back(make_line("everything else", rest, report));
  return report;
}

std::string render_op_report(const OpReport& report) {
  const std::string plain =
      report.plain_step_seconds ? fmt::format("; {:.1f} ms without the clock", *report.plain_step_seconds * 1e3) : "";
  std::string text = fmt::format("where the time of a step goes (mean of {} steps, {:.1f} ms{})\n", report.steps,
                                 report.step_seconds * 1e3, plain);
  text += fmt::format("  {:<34} {:>6} {:>10} {:>7} {:>12} {:>8} {:>10}\n", "operation", "calls", "ms", "share",
                      "GFLOP/s", "of peak", "GB/s");
  for (const OpLine& line : report.lines)
    text += fmt::format("  {:<34} {:>6} {:>10.2f} {:>6.1f}% {:>12} {:>8} {:>10}\n", line.operation, line.calls,
                        line.seconds * 1e3, line.share * 100, cell(line.flops_per_second, 1e9, ""),
                        cell(line.of_peak, 0.01, "%"), cell(line.bytes_per_second, 1e9, ""));
  return text;
}

}  // namespace tprimat::engine
