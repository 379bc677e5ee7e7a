#include "train/op_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "base/error.h"

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

using TracePoint = std::chrono::steady_clock::time_point;

// What an operation does, in the words of `tprimat profile`.
std::string_view class_of(const OpEvent& event) {
  const auto names = [&](std::string_view text) { return event.name.find(text) != std::string::npos; };
  if (event.is_product) return "matmul";
  if (names("exchange")) return "collective";
  if (names("gradients")) return "optimizer";  // their norm, and clearing them
  if (names("norm")) return "norm";
  if (names("cross-entropy")) return "softmax";
  if (names("AdamW")) return "optimizer";
  if (names("embedding")) return "embedding";
  if (names("activation") || names("rotary")) return "elementwise";
  return names("attention") ? "attention" : "other";
}

double microseconds(TracePoint from, TracePoint to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// Names are our own and need no escapes.
std::string render_event(std::string_view category, std::string_view name, double begin, double duration) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 0, "ts": {:.3f}, "dur": {:.3f})",
                     category, name, begin, duration);
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

std::optional<OpTraceRequest> op_trace_request() {
  const char* text = std::getenv("TPRIMAT_PROFILE");
  if (text == nullptr || *text == 0) return std::nullopt;
  std::istringstream stream(text);
  OpTraceRequest request;
  std::string kind;
  char colon = 0;
  std::getline(stream, kind, ':');
  stream >> request.first_step >> colon >> request.last_step >> std::ws;
  if (stream.get() == ':') std::getline(stream, request.path);
  const bool names_steps = colon == ':' && request.first_step >= 1 && request.last_step >= request.first_step;
  if (kind == "cuda") request.kind = OpTraceRequest::Kind::cuda;
  if (kind == "roctx") request.kind = OpTraceRequest::Kind::roctx;
  const bool is_own = kind == "own" && !request.path.empty();
  if (names_steps && (is_own || request.kind != OpTraceRequest::Kind::own)) return request;
  throw Error(Problem{fmt::format("'{}' is not a valid recording request", text), "TPRIMAT_PROFILE",
                      "set own:11:15:PATH for a trace of steps 11 to 15, cuda:11:15 for Nsight Systems, or roctx:11:15 "
                      "for rocprofv3"});
}

std::string render_op_trace(const std::vector<OpEvent>& events, const std::vector<StepSpan>& steps, int world_size) {
  const TracePoint start = steps.empty() ? TracePoint() : steps.front().begin;
  std::string text =
      fmt::format("{{\"distributedInfo\": {{\"rank\": 0, \"world_size\": {}}}, \"traceEvents\": [", world_size);
  std::string_view between = "\n";
  for (const StepSpan& step : steps) {
    text += between;
    text += render_event("user_annotation", fmt::format("ProfilerStep#{}", step.step), microseconds(start, step.begin),
                         microseconds(step.begin, step.end)) +
            "}";
    between = ",\n";
  }
  for (const OpEvent& event : events) {
    text += between;
    text += render_event("cpu_op", event.name, microseconds(start, event.begin), microseconds(event.begin, event.end)) +
            fmt::format(R"(, "args": {{"class": "{}"}}}})", class_of(event));
    between = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace tprimat::engine
