#include "why/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "stats/descriptive.h"
#include "text/enum_names.h"
#include "text/format.h"
#include "text/words.h"
#include "why/stragglers.h"
#include "why/trace_replay.h"

namespace tprimat::results {
namespace {

constexpr double k_largest_factor = 1000;

struct TargetName {
  std::string_view name;
  WhatIfTarget target;
  std::string_view word;  // instead of a factor; empty: none
  bool takes_factor;
};
constexpr TargetName k_targets[] = {
    {"products", WhatIfTarget::products, "probe", true},
    {"attention", WhatIfTarget::attention, "", true},
    {"memory-bound", WhatIfTarget::memory_bound, "", true},
    {"communication", WhatIfTarget::communication, "", true},
    {"overlap", WhatIfTarget::overlap, "full", false},
    {"slowest-rank", WhatIfTarget::slowest_rank, "median", false},
    {"launch", WhatIfTarget::launch, "", true},
    {"data", WhatIfTarget::data, "", true},
};

[[noreturn]] void refuse(std::string_view text) {
  throw Error(Problem{fmt::format("has no change '{}'", printable(text.substr(0, 60))), "--what-if",
                      "give one of products=probe, overlap=full, slowest-rank=median, or a factor of the durations: "
                      "products=1.2x, attention=0.5x, memory-bound=0.8x, communication=0, launch=0, data=0"});
}

[[noreturn]] void cannot(const WhatIf& change, std::string what, std::string hint) {
  throw Error(Problem{fmt::format("{} {}", change.text, what), "--what-if", std::move(hint)});
}

std::optional<double> parse_factor(std::string_view text) {
  if (text.ends_with('x')) text.remove_suffix(1);
  const auto factor = parse_number<double>(text);
  if (!factor || !(*factor >= 0 && *factor <= k_largest_factor)) return std::nullopt;
  return factor;
}

// The durations of a replayed trace after a change.
class TraceChange {
 public:
  TraceChange(const TraceReplay& replayed, std::span<const logs::Trace> traces, const WhatIfFacts& facts)
      : replayed_(replayed), traces_(traces), ranks_(traces.size()), facts_(facts) {}

  WhatIfAnswer answer(const WhatIf& change, double measured, double unchanged) const {
    WhatIfAnswer answer{change.text};
    std::vector<double> durations = replayed_.durations;
    double least = 0;  // s per step, which no replay goes below
    switch (change.target) {
      case WhatIfTarget::products:
        change.factor ? scale(durations, ReplayPart::products, *change.factor) : reach_probe(change, durations, answer);
        break;
      case WhatIfTarget::attention: scale(durations, ReplayPart::attention, *change.factor); break;
      case WhatIfTarget::memory_bound: scale(durations, ReplayPart::memory_bound, *change.factor); break;
      case WhatIfTarget::communication: scale(durations, ReplayPart::communication, *change.factor); break;
      case WhatIfTarget::launch: scale(durations, ReplayPart::launch, *change.factor); break;
      case WhatIfTarget::data: scale(durations, ReplayPart::data, *change.factor); break;
      case WhatIfTarget::overlap:
        least = longest_communication();
        scale(durations, ReplayPart::communication, 0);
        break;
      case WhatIfTarget::slowest_rank: speed_up_slowest(change, durations, answer); break;
    }
    const double changed = std::max(replay_step(replayed_, durations), least);
    answer.step_seconds = measured * changed / unchanged;
    answer.saved_seconds = measured - answer.step_seconds;
    return answer;
  }

 private:
  void scale(std::vector<double>& durations, ReplayPart part, double factor) const {
    for (size_t i = 0; i < durations.size(); ++i)
      if (replayed_.operations[i].part == part) durations[i] *= factor;
  }

  std::string_view format_of(const ReplayedOperation& operation) const {
    const logs::Trace& trace = traces_[operation.rank];
    return operation.shapes < trace.shapes.size() ? product_format(trace.shapes[operation.shapes]) : "";
  }

  // Products take as long as their FLOPs at the rate that a product of their size reaches; faster ones stay.
  void reach_probe(const WhatIf& change, std::vector<double>& durations, WhatIfAnswer& answer) const {
    if (facts_.product_rates.empty())
      cannot(change, "needs the rates that matrix products reach on this machine",
             "name the report of tprimat probe --json with --probe, or give a factor: products=0.8x");
    double known = 0, all = 0;
    for (size_t i = 0; i < durations.size(); ++i) {
      const ReplayedOperation& operation = replayed_.operations[i];
      if (operation.part != ReplayPart::products) continue;
      all += durations[i];
      if (operation.flops <= 0) continue;
      const auto rate = nearest_rate(facts_.product_rates, format_of(operation), operation.flops / 2);
      if (!rate) continue;
      known += durations[i];
      durations[i] = std::min(durations[i], operation.flops / *rate);
    }
    if (known <= 0)
      cannot(change, "needs products whose shapes and number format the trace states and the probe measured",
             "record with record_shapes=True, as tprimat run --profile-steps does, and probe that format");
    if (known < 0.99 * all)
      answer.note = fmt::format("unchanged: {} of the products' time, without shapes or a measured format",
                                format_percent(1 - known / all));
  }

  // Per step, of the rank that communicates longest: it cannot be hidden behind less.
  double longest_communication() const {
    std::vector<double> sums(ranks_, 0);
    for (size_t i = 0; i < replayed_.operations.size(); ++i)
      if (replayed_.operations[i].part == ReplayPart::communication)
        sums[replayed_.operations[i].rank] += replayed_.durations[i] / replayed_.steps[replayed_.operations[i].rank];
    return *std::max_element(sums.begin(), sums.end());
  }

  static bool is_own(ReplayPart part) { return part != ReplayPart::communication && part != ReplayPart::wait; }

  // The rank with the most work of its own does each kind of it as fast as the median of the others.
  void speed_up_slowest(const WhatIf& change, std::vector<double>& durations, WhatIfAnswer& answer) const {
    if (ranks_ < 2) cannot(change, "needs the traces of several ranks", "name a trace of each rank");
    std::vector<double> sums(ranks_, 0);
    std::map<ReplayPart, std::vector<double>> by_part;
    for (size_t i = 0; i < durations.size(); ++i) {
      const ReplayedOperation& operation = replayed_.operations[i];
      if (!is_own(operation.part)) continue;
      sums[operation.rank] += durations[i];
      auto& part = by_part.try_emplace(operation.part, ranks_, 0.0).first->second;
      part[operation.rank] += durations[i];
    }
    const auto slowest = static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
    std::map<ReplayPart, double> factors;
    for (const auto& [part, seconds] : by_part) {
      std::vector<double> others = seconds;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(slowest));
      factors[part] = seconds[slowest] > 0 ? std::min(1.0, median(others) / seconds[slowest]) : 1;
    }
    for (size_t i = 0; i < durations.size(); ++i) {
      const ReplayedOperation& operation = replayed_.operations[i];
      if (operation.rank == slowest && is_own(operation.part)) durations[i] *= factors[operation.part];
    }
    answer.note = fmt::format("trace {} of {} is the slowest", slowest + 1, ranks_);
  }

  const TraceReplay& replayed_;
  std::span<const logs::Trace> traces_;
  size_t ranks_;
  const WhatIfFacts& facts_;
};

// The slowest workers get even durations.
void even_out_slowest(const PipelineReplay& pipeline, std::vector<double>& durations, WhatIfAnswer& answer) {
  const StragglerReport report = find_stragglers(pipeline);
  const std::vector<double> ideal = ideal_durations(pipeline);
  for (size_t i = 0; i < durations.size(); ++i)
    for (const StragglerWorker& worker : report.slowest)
      if (worker.dp_rank == pipeline.operations[i].dp_rank && worker.stage == pipeline.operations[i].stage)
        durations[i] = ideal[i];
  answer.note =
      fmt::format("slowest: stage {} of replica {}", report.slowest.front().stage, report.slowest.front().dp_rank);
}

void change_pipeline(const PipelineReplay& pipeline, const WhatIf& change, std::vector<double>& durations,
                     WhatIfAnswer& answer) {
  const auto scale = [&](bool communication, double factor) {
    for (size_t i = 0; i < durations.size(); ++i)
      if (is_communication(pipeline.operations[i].kind) == communication) durations[i] *= factor;
  };
  switch (change.target) {
    case WhatIfTarget::products:
      if (!change.factor)
        cannot(change, "needs shapes, and a pipeline's operations have none", "give a factor: products=0.8x");
      answer.note = "scales whole forward and backward computations: the records do not split them";
      return scale(false, *change.factor);
    case WhatIfTarget::communication: return scale(true, *change.factor);
    case WhatIfTarget::overlap: return scale(true, 0);
    case WhatIfTarget::slowest_rank: return even_out_slowest(pipeline, durations, answer);
    case WhatIfTarget::launch:
      if (*change.factor != 0) cannot(change, "does not apply to a pipeline", "give launch=0");
      return;  // the replay has no delays of the host
    default: cannot(change, "does not apply to a pipeline: its operations are whole computations", "name traces");
  }
}

// "+1.2 %"; zero has no sign.
std::string change_text(double change) {
  return std::abs(change) < 0.0005 ? "0.0 %" : fmt::format("{:+.1f} %", 100 * change);
}

}  // namespace

WhatIf parse_what_if(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(text);
  const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
  for (const TargetName& known : k_targets) {
    if (known.name != name) continue;
    if (!known.word.empty() && value == known.word) return {std::string(text), known.target, std::nullopt};
    const auto factor = parse_factor(value);
    if (!known.takes_factor || !factor) refuse(text);
    return {std::string(text), known.target, factor};
  }
  refuse(text);
}

WhatIfReport answer_what_if(std::span<const logs::Trace> ranks, std::span<const WhatIf> changes,
                            const WhatIfFacts& facts) {
  const TraceReplay replayed = make_trace_replay(ranks);
  WhatIfReport report;
  report.measured_seconds = replayed.measured_seconds;
  report.replayed_seconds = replay_step(replayed, replayed.durations);
  report.replay_error = report.replayed_seconds / report.measured_seconds - 1;
  const TraceChange change(replayed, ranks, facts);
  for (const WhatIf& each : changes)
    report.answers.push_back(change.answer(each, report.measured_seconds, report.replayed_seconds));
  return report;
}

WhatIfReport answer_what_if(const PipelineReplay& pipeline, std::span<const WhatIf> changes) {
  WhatIfReport report;
  report.measured_seconds = mean(pipeline.measured);
  report.replayed_seconds = mean(replay_steps(pipeline, pipeline.durations));
  report.replay_error = report.replayed_seconds / report.measured_seconds - 1;
  for (const WhatIf& each : changes) {
    WhatIfAnswer answer{each.text};
    std::vector<double> durations = pipeline.durations;
    change_pipeline(pipeline, each, durations, answer);
    const double changed = mean(replay_steps(pipeline, durations));
    const bool drops_delays = each.target == WhatIfTarget::launch;
    answer.step_seconds = drops_delays ? changed : report.measured_seconds * changed / report.replayed_seconds;
    answer.saved_seconds = report.measured_seconds - answer.step_seconds;
    report.answers.push_back(std::move(answer));
  }
  return report;
}

std::string render_what_if(const WhatIfReport& report) {
  std::string text = fmt::format("Step as recorded: {}; replayed with unchanged durations: {} ({})\n",
                                 format_duration(report.measured_seconds), format_duration(report.replayed_seconds),
                                 change_text(report.replay_error));
  TextTable table{{"what if", "step", "saved", "change", "note"}, {}, {1, 2, 3}};
  for (const WhatIfAnswer& answer : report.answers)
    table.rows.push_back({answer.change, format_duration(answer.step_seconds),
                          (answer.saved_seconds < 0 ? "-" : "") + format_duration(std::abs(answer.saved_seconds)),
                          change_text(answer.step_seconds / report.measured_seconds - 1), answer.note});
  return text + "\n" + render_text(table);
}

}  // namespace tprimat::results
