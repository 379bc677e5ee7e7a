#include "planner/plan_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/flop_breakdown.h"
#include "text/format.h"

namespace tprimat {
namespace {

double causal_flops_per_token(const Workload& workload) {
  return break_down(workload.shape, {workload.sequence_length, true, 0}).total();
}

PlanLine line_of(const RankedLayout& plan, const Machine& machine, double flops_per_token) {
  const Layout& l = plan.workload.layout;
  PlanLine line;
  line.tensor = l.tensor, line.pipeline = l.pipeline, line.chunks = l.chunks;
  line.context = l.context, line.data = l.data, line.micro_batch = l.micro_batch;
  line.accumulation = plan.workload.global_batch / (l.data * l.micro_batch);
  line.sharding = l.sharding, line.recompute = l.recompute;
  line.memory_bytes = plan.memory.total();
  const MemoryEstimate& m = plan.memory;
  line.bytes = {{"weights", m.weights},           {"gradients", m.gradients}, {"master weights", m.master_weights},
                {"moments", m.moments},           {"logits", m.logits},       {"activations", m.activations},
                {"gathered weights", m.gathered}, {"buffers", m.buffers},     {"slack", m.slack}};
  const StepTime& t = plan.time;
  if (t.total() <= 0) return line;
  line.step_seconds = t.total();
  line.tokens_per_second_per_gpu = t.tokens_per_second_per_gpu(plan.workload);
  line.mfu = line.tokens_per_second_per_gpu * flops_per_token / machine.peak(plan.workload.precision);
  line.seconds = {{"products", t.products},        {"attention", t.attention},
                  {"element-wise", t.elementwise}, {"head", t.ends},
                  {"recompute", t.recompute},      {"tensor exchange", t.tensor},
                  {"context exchange", t.context}, {"pipeline transfers", t.transfers},
                  {"data exchange", t.data},       {"bubble", t.bubble},
                  {"optimizer", t.optimizer},      {"overhead", t.overhead}};
  return line;
}

std::string describe_savers(const PlanLine& line) {
  std::string text(enum_name(line.sharding));
  if (line.recompute != Recompute::none) text += fmt::format(", {} recompute", enum_name(line.recompute));
  return text;
}

std::string share(const PlanLine& line, std::initializer_list<const char*> keys) {
  double sum = 0;
  for (const char* key : keys) sum += line.seconds.at(key);
  return format_percent(sum / line.step_seconds);
}

std::vector<std::string> cells_of(const PlanLine& line, size_t rank) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  return {number(static_cast<int64_t>(rank)),
          number(line.tensor),
          number(line.pipeline),
          number(line.chunks),
          number(line.context),
          number(line.data),
          number(line.micro_batch),
          number(line.accumulation),
          describe_savers(line),
          format_duration(line.step_seconds),
          format_count(line.tokens_per_second_per_gpu),
          format_percent(line.mfu),
          format_gb(line.memory_bytes),
          share(line, {"tensor exchange", "context exchange", "pipeline transfers", "data exchange"}),
          share(line, {"bubble"})};
}

std::string render_lines(const std::vector<PlanLine>& lines) {
  TextTable table{{"", "TP", "PP", "VP", "CP", "DP", "MBS", "GA", "sharding", "step", "tokens/s/GPU", "MFU", "memory",
                   "exchange", "bubble"},
                  {},
                  {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14}};
  for (size_t i = 0; i < lines.size(); ++i) table.rows.push_back(cells_of(lines[i], i + 1));
  return render_text(table);
}

// Largest first.
std::string render_parts(const std::map<std::string, double>& parts, double whole, std::string (*format)(double)) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, value] : parts)
    if (value > 0.005 * whole) sorted.emplace_back(value, name);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [value, name] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format(value));
  return text;
}

// Where the fastest layout's time and memory go.
std::string render_choice(const PlanReport& report) {
  const PlanLine& best = report.ranked.front();
  return fmt::format("the fastest: {}\n  time    {}\n  memory  {} of {}\n", describe_savers(best),
                     render_parts(best.seconds, best.step_seconds, format_duration),
                     render_parts(best.bytes, best.memory_bytes, format_gb), format_gb(report.memory_bytes));
}

std::string render_none_fits(const PlanReport& report) {
  if (!report.smallest) return "no layout of this model, batch and number of GPUs is legal\n";
  const PlanLine& l = *report.smallest;
  return fmt::format(
      "none of {} layouts fits (stages with unequal numbers of layers were not tried): the smallest (TP {}, PP {}, CP "
      "{}, DP {}, MBS {}, {}) needs {} of {}\n  memory  {}\n",
      report.legal, l.tensor, l.pipeline, l.context, l.data, l.micro_batch, describe_savers(l),
      format_gb(l.memory_bytes), format_gb(report.memory_bytes), render_parts(l.bytes, l.memory_bytes, format_gb));
}

}  // namespace

PlanReport make_plan_report(const PlanRequest& request, const SearchOutcome& outcome) {
  PlanReport report;
  report.model = request.shape.model.full_name;
  report.gpu = request.machine.id;
  report.framework = request.family->full_name;
  report.gpus = request.gpus;
  report.sequence_length = request.sequence_length;
  report.global_batch_size = request.global_batch;
  report.precision = request.precision;
  report.legal = outcome.legal, report.fitting = outcome.fitting;
  report.memory_bytes = request.machine.memory_bytes;
  report.calibrated = request.machine.calibrated();
  Workload any;
  any.shape = request.shape, any.sequence_length = request.sequence_length;
  const double flops = causal_flops_per_token(any);
  for (const RankedLayout& plan : outcome.ranked) report.ranked.push_back(line_of(plan, request.machine, flops));
  for (const RankedLayout& plan : outcome.frontier) report.frontier.push_back(line_of(plan, request.machine, flops));
  if (outcome.smallest) report.smallest = line_of(*outcome.smallest, request.machine, flops);
  return report;
}

std::string render_plan_report(const PlanReport& report) {
  std::string text = fmt::format("{} on {} x {}, {}, {}, SL {}, GBS {}: {} of {} legal layouts fit\n\n", report.model,
                                 report.gpus, report.gpu, report.framework, enum_name(report.precision),
                                 report.sequence_length, report.global_batch_size, report.fitting, report.legal);
  if (report.ranked.empty()) return text + render_none_fits(report);
  text += render_lines(report.ranked) + "\n" + render_choice(report);
  if (!report.calibrated)
    text +=
        "\nno measurement of this architecture stands behind these figures: they rest on priors (docs/planner.md)\n";
  return text;
}

}  // namespace tprimat
