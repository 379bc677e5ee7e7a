#include "compare/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/verdict.h"
#include "stats/mean_estimate.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::results {
namespace {

// The metric of a participant for a rate of one token per second and device.
std::optional<double> constant_of(const Contender& contender, const Metric& metric) {
  const auto figure = read_figure(contender, metric), rate = read_figure(contender, metrics().front());
  if (!figure || !rate || rate->value <= 0) return std::nullopt;
  return metric.relation == StepRelation::inverse ? figure->value / rate->value : figure->value * rate->value;
}

std::optional<Estimate> ratio_by_steps(const ModelGroup& group, const Pair& pair, const Metric& metric) {
  const auto before = constant_of(group.contenders[pair.reference], metric);
  const auto after = constant_of(group.contenders[pair.subject], metric);
  if (!pair.ratio || !before || !after || *before == 0) return std::nullopt;
  const double scale = *after / *before;
  const Estimate& rate = *pair.ratio;
  if (metric.relation == StepRelation::inverse) {
    Estimate ratio{scale * rate.value, {}, {}};
    if (rate.low && rate.high) ratio.low = scale * *rate.low, ratio.high = scale * *rate.high;
    return ratio;
  }
  if (rate.value <= 0) return std::nullopt;
  Estimate ratio{scale / rate.value, {}, {}};
  if (rate.low && rate.high && *rate.low > 0) ratio.low = scale / *rate.high, ratio.high = scale / *rate.low;
  return ratio;
}

bool is_bounded(const Estimate& estimate) { return estimate.low && estimate.high; }
Bounded bounded(const Estimate& estimate) { return {estimate.value, {*estimate.low, *estimate.high}}; }

Estimate subtract(const Estimate& after, const Estimate& before) {
  Estimate difference{after.value - before.value, {}, {}};
  if (!is_bounded(before) || !is_bounded(after)) return difference;
  const Interval interval = difference_interval(bounded(after), bounded(before));
  difference.low = interval.low, difference.high = interval.high;
  return difference;
}

// Figures that follow from the steps share one interval. It ends where the figure after the change would be impossible.
Estimate share_of(const Estimate& before, const Estimate& share, const PossibleRange& range) {
  Estimate difference{before.value * share.value, {}, {}};
  if (share.low && share.high && before.value > 0) {
    difference.low = std::max(before.value * *share.low, range.least - before.value);
    difference.high = std::min(before.value * *share.high, range.most - before.value);
  }
  return difference;
}

std::optional<Estimate> less_one(std::optional<Estimate> ratio) {
  if (!ratio || !std::isfinite(ratio->value)) return std::nullopt;
  ratio->value -= 1;
  if (ratio->low && ratio->high) *ratio->low -= 1, *ratio->high -= 1;
  return ratio;
}

// Walks over one gate from left to right.
class GateReader {
 public:
  explicit GateReader(const std::string& text) : text_(text) {}

  Gate read() {
    Gate gate{.text = text_};
    gate.metric = read_metric();
    gate.compare = read_operator();
    gate.threshold = read_number();
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '%') {
      ++at_;
      gate.relative = true;
      gate.threshold /= 100;
    }
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("unexpected \"{}\"", rest()), "end after the number or its %");
    return gate;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error(Problem{what, fmt::format("--fail-if \"{}\", column {}", printable(text_), at_ + 1), hint});
  }
  std::string rest() const { return printable(text_.substr(at_, 40)); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  const Metric* read_metric() {
    skip_blanks();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '_')) ++end;
    const std::string key = text_.substr(at_, end - at_);
    if (key.empty()) fail("a metric is missing", "write METRIC < -3%, e.g. tokens_per_second < -3%");
    const Metric* metric = find_metric(key);
    if (metric == nullptr) fail(fmt::format("unknown metric \"{}\"", key), suggest_metric(key));
    at_ = end;
    return metric;
  }

  GateOperator read_operator() {
    skip_blanks();
    for (const std::string_view name : {"<=", ">=", "<", ">"}) {
      if (text_.compare(at_, name.size(), name) != 0) continue;
      at_ += name.size();
      return *parse_enum<GateOperator>(name);
    }
    fail(at_ < text_.size() ? fmt::format("\"{}\" is not an operator", rest()) : "an operator is missing",
         "write one of <, <=, >, >=");
  }

  double read_number() {
    skip_blanks();
    const size_t sign = at_ < text_.size() && text_[at_] == '+' ? 1 : 0;  // which from_chars does not accept
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_ + sign, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value))
      fail(at_ < text_.size() ? fmt::format("\"{}\" is not a number", rest()) : "a number is missing",
           "write the change that fails, e.g. -3% or 0.5");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
};

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

// The interval alone decides; a figure without one is compared as a value, unless it should have one.
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
  return std::ranges::all_of(contender.runs,
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
    return settle(
        result, GateOutcome::inconclusive,
        has_percentages(*result.gate.metric)
            ? "the baseline's figure is not positive, so a percentage is undefined: give the threshold without %"
            : "a figure that may be negative has no percentage change: give the threshold without %");
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

Change measure_change(const ModelGroup& group, const Pair& pair, const Metric& metric) {
  Change change{read_figure(group.contenders[pair.reference], metric),
                read_figure(group.contenders[pair.subject], metric),
                {},
                {},
                metric.relation != StepRelation::none};
  if (!change.before || !change.after) return change;
  change.difference = subtract(*change.after, *change.before);
  if (has_percentages(metric))
    change.share = less_one(change.follows_from_steps ? ratio_by_steps(group, pair, metric)
                                                      : estimate_ratio_by_figures(*change.before, *change.after));
  if (change.follows_from_steps && change.share)
    change.difference = share_of(*change.before, *change.share, metric.range);
  return change;
}

Gate parse_gate(const std::string& text) { return GateReader(text).read(); }

std::vector<Gate> parse_gates(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  std::vector<Problem> problems;
  for (const std::string& text : texts) {
    try {
      gates.push_back(parse_gate(text));
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  throw_if_any(std::move(problems));
  return gates;
}

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
    return std::ranges::any_of(results, [&](const GateResult& each) { return each.outcome == outcome; });
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
