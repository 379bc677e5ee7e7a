#include "compare/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "compare/audit.h"
#include "compare/change.h"
#include "compare/settle.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

bool fails_at(const Gate& gate, double change) {
  switch (gate.compare) {
    case GateOperator::less: return change < gate.threshold;
    case GateOperator::less_or_equal: return change <= gate.threshold;
    case GateOperator::greater: return change > gate.threshold;
    case GateOperator::greater_or_equal: return change >= gate.threshold;
  }
  return true;
}

void settle(GateResult& result, GateOutcome outcome, std::string reason) {
  result.outcome = outcome;
  result.reason = std::move(reason);
}

// The interval alone decides; a figure that has none is compared as a value, unless it should have one.
void judge_change(GateResult& result, bool needs_interval, const Pair& pair) {
  const Estimate& change = *result.change;
  if (!change.low || !change.high) {
    if (needs_interval)
      return settle(result, GateOutcome::inconclusive,
                    "one side has only averages, or fewer than five steady steps, so there is no interval");
    return settle(result, fails_at(result.gate, change.value) ? GateOutcome::failed : GateOutcome::passed,
                  "the figures have no interval and are compared as values");
  }
  const bool low = fails_at(result.gate, *change.low), high = fails_at(result.gate, *change.high);
  if (low != high)
    return settle(result, GateOutcome::inconclusive, "the interval straddles the threshold" + advise_runs(pair));
  settle(result, low ? GateOutcome::failed : GateOutcome::passed,
         low ? "the whole interval lies in the failing region" : "the whole interval lies outside it");
}

bool is_complete(const Contender& contender) {
  return std::all_of(contender.runs.begin(), contender.runs.end(),
                     [](const LoadedRun& run) { return run.result.status == RunStatus::complete; });
}

std::string first_error(const ModelGroup& group, const Pair& pair) {
  for (const auto* findings :
       {&pair.findings, &group.contenders[pair.reference].findings, &group.contenders[pair.subject].findings})
    for (const Finding& finding : *findings)
      if (finding.severity == Severity::error) return finding.sentence;
  return "the runs did different work";
}

void judge_gate(GateResult& result, const ModelGroup& group, const Pair& pair) {
  const Change change = measure_change(group, pair, *result.gate.metric);
  result.before = change.before, result.after = change.after;
  result.change = result.gate.relative ? change.share : change.difference;
  for (const size_t side : {pair.reference, pair.subject})
    if (!is_complete(group.contenders[side]))
      return settle(result, GateOutcome::invalid,
                    fmt::format("{} is incomplete or invalid", group.contenders[side].label));
  if (!pair.comparable) return settle(result, GateOutcome::not_comparable, first_error(group, pair));
  if (auto why = why_not_compared(*result.gate.metric, pair.findings, group.contenders[pair.reference],
                                  group.contenders[pair.subject]))
    return settle(result, GateOutcome::not_comparable, std::move(*why));
  if (!change.before || !change.after)
    return settle(result, GateOutcome::inconclusive,
                  fmt::format("{} lacks this figure", !change.before ? result.baseline : result.subject));
  if (!result.change)
    return settle(result, GateOutcome::inconclusive,
                  "the baseline's figure is not positive, so a percentage is undefined: give the threshold without %");
  judge_change(result, change.follows_from_steps, pair);
}

std::string format_change(const Gate& gate, double change) {
  const std::string sign = change > 0 ? "+" : "";
  if (gate.relative) return sign + format_percent(change, 2);
  const std::string unit(gate.metric->unit);
  return sign + format_significant(change, 4) + (unit.empty() ? "" : " " + unit);
}

std::string format_value(const Metric& metric, const std::optional<Estimate>& figure) {
  return figure ? format_significant(figure->value, 5) + (metric.unit.empty() ? "" : " " + std::string(metric.unit))
                : "not known";
}

}  // namespace

std::vector<GateResult> judge_gates(const Comparison& comparison, const std::vector<Gate>& gates) {
  std::vector<GateResult> results;
  for (const ModelGroup& group : comparison.groups) {
    if (!group.has_baseline) continue;
    for (const Pair& pair : group.pairs)
      for (const Gate& gate : gates) {
        GateResult result{.gate = gate,
                          .model = group.model,
                          .baseline = group.contenders[pair.reference].label,
                          .subject = group.contenders[pair.subject].label};
        judge_gate(result, group, pair);
        results.push_back(std::move(result));
      }
  }
  if (results.empty())
    throw Error(Problem{"there are no results to test against the baseline", "--fail-if",
                        "add results of the baseline's model"});
  return results;
}

ExitStatus gates_status(const std::vector<GateResult>& results) {
  const auto any = [&](GateOutcome outcome) {
    return std::any_of(results.begin(), results.end(), [&](const GateResult& each) { return each.outcome == outcome; });
  };
  if (any(GateOutcome::failed)) return ExitStatus::gate_failed;
  if (any(GateOutcome::invalid)) return ExitStatus::work_failed;
  if (any(GateOutcome::not_comparable)) return ExitStatus::not_comparable;
  return any(GateOutcome::inconclusive) ? ExitStatus::inconclusive : ExitStatus::done;
}

std::string describe_gate(const GateResult& result) {
  const Metric& metric = *result.gate.metric;
  std::string change = "not known";
  if (result.change) change = format_change(result.gate, result.change->value);
  if (result.change && result.change->low && result.change->high)
    change += fmt::format(" [{} to {}]", format_change(result.gate, *result.change->low),
                          format_change(result.gate, *result.change->high));
  return fmt::format("{}: {} of {} against {}: {} after {}, a change of {}; the gate fails at {} {}; {}",
                     enum_name(result.outcome), metric.key, result.subject, result.baseline,
                     format_value(metric, result.after), format_value(metric, result.before), change,
                     enum_name(result.gate.compare), format_change(result.gate, result.gate.threshold), result.reason);
}

}  // namespace tprimat::results
