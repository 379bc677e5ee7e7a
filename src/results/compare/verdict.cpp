#include "compare/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/contender.h"
#include "compare/plausibility.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "stats/log_ratio.h"
#include "stats/mean_estimate.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// A rate that does not come from the step times (a file with averages only) has no interval of its own.
bool has_interval(const RunResult& run) {
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  return rate && rate->low && rate->value > 0 && !steady_step_times(run).empty();
}

// Tokens of one step per device, as the rate implies them: the file's batch may contradict it.
double work_per_step(const RunResult& result) {
  return result.derived.tokens_per_second_per_gpu->value * mean(steady_step_times(result));
}

// If a log rounds its step times by more than they vary, every step has the same error, which averaging does not
// remove: all values within the rounding are equally likely.
std::optional<MeanEstimate> estimate_step_time(const RunResult& run) {
  const std::vector<double> times = steady_step_times(run);
  auto estimate = estimate_mean(times);
  const auto share = find_rounding(run);
  if (!estimate || !share || stddev(times) > *share * estimate->value) return estimate;
  const double half_width = *share * estimate->value;
  estimate->variance += half_width * half_width / 3;
  return estimate;
}

// Several runs in which every step took the same time to the last digit: an unstated rounding, so their spread is
// meaningless.
bool are_all_alike(const Contender& contender) {
  const auto first = find_constant_time(contender.first());
  return first && contender.runs.size() > 1 && std::ranges::all_of(contender.runs, [&](const LoadedRun& run) {
           return find_constant_time(run.result) == first;
         });
}

constexpr double k_false_discovery_rate = 0.05;

bool names_a_winner(Verdict verdict) { return verdict == Verdict::faster || verdict == Verdict::slower; }

// With an assumed spread, only the number of runs that would measure the spread can be planned.
int64_t runs_that_show_spread(const LogRatio& ratio) {
  constexpr size_t k_enough = 3;
  const size_t least = std::min(ratio.numerator.runs, ratio.denominator.runs);
  return static_cast<int64_t>(k_enough - std::min(k_enough - 1, least));
}

// If other pairs require a smaller p-value, so does the plan.
void plan_runs(Pair& pair, double smallest_effect) {
  PairStatistics& statistics = *pair.statistics;
  const LogRatio& ratio = *pair.measured;
  if (ratio.spread == RunSpread::assumed) {
    statistics.more_runs = runs_that_show_spread(ratio);
    statistics.more_runs_help = true;
    return;
  }
  const double p = statistics.p_value, adjusted = statistics.adjusted_p_value.value_or(p);
  const double strictness = adjusted > p && p > 0 ? p / adjusted : 1;
  const auto more = more_runs_to_settle(
      ratio, {.margin = smallest_effect, .significance = k_false_discovery_rate * std::clamp(strictness, 1e-6, 1.0)});
  statistics.more_runs_help = more.has_value();
  if (more) statistics.more_runs = static_cast<int64_t>(*more);
}

PairStatistics describe_ratio(const LogRatio& ratio, const Margins& margins) {
  PairStatistics s;
  s.subject_runs = static_cast<int64_t>(ratio.denominator.runs);  // the ratio of rates is that of times, upside down
  s.reference_runs = static_cast<int64_t>(ratio.numerator.runs);
  s.standard_error = std::sqrt(ratio.variance);
  s.degrees_of_freedom = ratio.degrees_of_freedom;
  s.run_spread = ratio.spread;
  if (ratio.spread == RunSpread::assumed) s.assumed_spread = margins.assumed_run_spread;
  s.p_value = p_value_beyond(ratio, margins.smallest_effect);
  return s;
}

// All pairs of the comparison whose verdict is shown.
std::vector<Pair*> tested_pairs(Comparison& comparison) {
  std::vector<Pair*> pairs;
  for (ModelGroup& group : comparison.groups)
    for (Pair& pair : group.pairs)
      if (pair.statistics && (pair.comparable || comparison.force)) pairs.push_back(&pair);
  return pairs;
}

void hold_to_discovery_rate(const std::vector<Pair*>& pairs) {
  std::vector<double> p_values;
  for (const Pair* pair : pairs) p_values.push_back(pair->statistics->p_value);
  const std::vector<double> adjusted = adjust_p_values(p_values);
  for (size_t i = 0; i < pairs.size(); ++i) {
    PairStatistics& statistics = *pairs[i]->statistics;
    statistics.adjusted_p_value = adjusted[i];
    statistics.tested_pairs = static_cast<int64_t>(pairs.size());
    if (names_a_winner(pairs[i]->verdict) && adjusted[i] > k_false_discovery_rate)
      pairs[i]->verdict = Verdict::inconclusive;
  }
}

// "1 %", "0.5 %"
std::string format_share(double share) { return fmt::format("{:.3g} %", share * 100); }

std::string explain_spread(const PairStatistics& s) {
  if (s.run_spread == RunSpread::borrowed) return ", with the other side's spread between runs";
  if (s.run_spread == RunSpread::measured) return "";
  return fmt::format(", assuming a spread between runs of {}", format_share(*s.assumed_spread));
}

std::string explain_plan(const Pair& pair) {
  const PairStatistics& s = *pair.statistics;
  if (s.run_spread == RunSpread::assumed)
    return fmt::format("; {} more run{} per side would measure it", *s.more_runs, *s.more_runs == 1 ? "" : "s");
  if (pair.unquiet) return advise_runs(pair);
  if (!s.more_runs_help.value_or(false)) return "; more runs would hardly settle it: the ratio is close to the margin";
  return fmt::format("; about {} more run{} per side would settle it", *s.more_runs, *s.more_runs == 1 ? "" : "s");
}

// An interval many margins wide, because the runs of a side differ by more than a training does.
std::optional<std::string> find_unquiet(const ModelGroup& group, const Pair& pair, double smallest_effect) {
  constexpr double k_wide = 5;
  const double half = std::log(*pair.ratio->high / *pair.ratio->low) / 2;
  if (pair.statistics->run_spread == RunSpread::assumed || !(half > k_wide * std::log1p(smallest_effect)))
    return std::nullopt;
  std::optional<RateRange> widest;
  for (const size_t side : {pair.reference, pair.subject})
    if (const auto range = find_disagreement(group.contenders[side]);
        range && (!widest || range->high / range->low > widest->high / widest->low))
      widest = range;
  return widest ? std::optional(widest->text()) : std::nullopt;
}

// Ratio of tokens/s per device, subject / reference, with its 95 % interval. Without an interval where a side has only
// averages; nothing where a side has no rate.
std::optional<Estimate> estimate_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                       const std::optional<LogRatio>& measured) {
  if (!reference.rate || !subject.rate || *reference.rate <= 0) return std::nullopt;
  return measured ? to_estimate(*measured) : Estimate{*subject.rate / *reference.rate, {}, {}};
}

bool is_chance(const PairStatistics& s) {
  const bool is_rare_alone = s.p_value < k_false_discovery_rate;
  return is_rare_alone && s.adjusted_p_value.value_or(0) > k_false_discovery_rate;
}

std::string explain_interval(const Pair& pair, double smallest_effect) {
  const std::string margin = format_share(smallest_effect);
  const std::string interval = fmt::format("the interval {} to {}", format_significant(*pair.ratio->low, 4),
                                           format_significant(*pair.ratio->high, 4));
  const PairStatistics& s = *pair.statistics;
  if (pair.verdict == Verdict::inconclusive && is_chance(s))
    return fmt::format("{} lies beyond {}, but some of {} pairs do so by chance (adjusted p {})", interval, margin,
                       *s.tested_pairs, format_significant(*s.adjusted_p_value, 2));
  const char* where = pair.verdict == Verdict::same ? "lies within" : "lies beyond";
  return fmt::format("{} {} {}", interval, pair.verdict == Verdict::inconclusive ? "straddles" : where, margin);
}

// Why, in words: "the interval 1.53 to 1.57 lies beyond 1 %".
std::string explain(const Pair& pair, double smallest_effect) {
  if (!pair.ratio) return pair.time_to_train ? pair.time_to_train->sentence : "one side has no rate per device";
  if (!pair.statistics)
    return "there is no interval: one side has only averages or its framework's own rate, or fewer than five "
           "steady steps";
  std::string text = explain_interval(pair, smallest_effect) + explain_spread(*pair.statistics);
  if (pair.verdict == Verdict::inconclusive) text += explain_plan(pair);
  return text;
}

// Of the run's devices, Hz.
std::optional<double> mean_clock(const RunResult& run) {
  double sum = 0;
  int count = 0;
  for (const TelemetrySummary& each : run.telemetry) {
    const double clock = each.mean_clock_hz.value_or(0);
    if (is_possible_clock(run, clock)) sum += clock, ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// Cycles per step instead of seconds.
std::optional<RateEvidence> count_in_cycles(const Contender& contender) {
  std::vector<double> clocks;
  for (const LoadedRun& run : contender.runs) {
    const auto clock = mean_clock(run.result);
    if (!clock) return std::nullopt;
    clocks.push_back(*clock);
  }
  RateEvidence evidence = gather_evidence(contender);
  for (size_t i = 0; i < evidence.step_times.size(); ++i) {
    evidence.step_times[i].value *= clocks[i];
    evidence.step_times[i].variance *= clocks[i] * clocks[i];
  }
  return evidence;
}

const char* describe_gap(Verdict by_time, Verdict by_cycles) {
  if (!names_a_winner(by_time))
    return names_a_winner(by_cycles) ? "different clocks hide a gap per clock cycle"
                                     : "per clock cycle neither side leads";
  if (by_cycles == by_time) return "the gap remains per clock cycle";
  if (by_cycles == Verdict::inconclusive) return "per clock cycle the gap is uncertain";
  if (names_a_winner(by_cycles)) return "the clocks explain the gap: per clock cycle the other side leads";
  return "the clocks explain the gap: per clock cycle it disappears";
}

Finding describe_cycles(const Pair& pair, const Contender& reference, const Contender& subject) {
  const Estimate& ratio = *pair.statistics->cycle_ratio;
  const bool same_device = reference.first().gpu_info.device_name == subject.first().gpu_info.device_name;
  const auto figure = [](double value) { return format_significant(value, 4); };
  return {"clock", Severity::note,
          fmt::format("{}: ratio {} per cycle ({} to {}) against {} by time{}",
                      describe_gap(pair.verdict, *pair.statistics->cycle_verdict), figure(ratio.value),
                      figure(*ratio.low), figure(*ratio.high), figure(pair.ratio->value),
                      same_device ? "" : "; a cycle of a different device does different work"),
          ""};
}

}  // namespace

std::optional<Estimate> estimate_ratio_by_figures(const Estimate& reference, const Estimate& subject) {
  if (!(reference.value > 0) || !(subject.value >= 0)) return std::nullopt;
  Estimate ratio{subject.value / reference.value, {}, {}};
  if (!reference.low || !reference.high || !subject.low || !subject.high) return ratio;
  if (const auto interval = ratio_interval({subject.value, {*subject.low, *subject.high}},
                                           {reference.value, {*reference.low, *reference.high}}))
    ratio.low = interval->low, ratio.high = interval->high;
  return ratio;
}

RateEvidence gather_evidence(const Contender& contender) {
  RateEvidence evidence;
  if (const auto figure = read_figure(contender, metrics().front())) evidence.rate = figure->value;
  if (are_all_alike(contender)) return evidence;
  for (const LoadedRun& run : contender.runs) {
    const auto estimate = has_interval(run.result) ? estimate_step_time(run.result) : std::nullopt;
    if (!estimate) return {evidence.rate, {}, 0};
    evidence.step_times.push_back(*estimate);
  }
  evidence.work_per_step = work_per_step(contender.first());
  return evidence;
}

std::optional<LogRatio> measure_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                      double assumed_run_spread) {
  if (reference.step_times.empty() || subject.step_times.empty()) return std::nullopt;
  LogRatio ratio = compare_means(reference.step_times, subject.step_times, assumed_run_spread);
  ratio.value += std::log(subject.work_per_step / reference.work_per_step);
  return ratio;
}

Estimate to_estimate(const LogRatio& ratio) {
  const Interval interval = ratio_interval(ratio);
  return {std::exp(ratio.value), interval.low, interval.high};
}

Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect) {
  if (!ratio || !ratio->low || !ratio->high) return Verdict::inconclusive;
  const double above = 1 + smallest_effect, below = 1 / above;
  if (*ratio->low > above) return Verdict::faster;
  if (*ratio->high < below) return Verdict::slower;
  return *ratio->low >= below && *ratio->high <= above ? Verdict::same : Verdict::inconclusive;
}

void judge_pair(Pair& pair, const RateEvidence& reference, const RateEvidence& subject, const Margins& margins) {
  pair.measured = measure_ratio(reference, subject, margins.assumed_run_spread);
  pair.ratio = estimate_ratio(reference, subject, pair.measured);
  pair.verdict = judge(pair.ratio, margins.smallest_effect);
  if (pair.measured && pair.ratio) pair.statistics = describe_ratio(*pair.measured, margins);
}

void settle_verdicts(Comparison& comparison) {
  hold_to_discovery_rate(tested_pairs(comparison));
  for (ModelGroup& group : comparison.groups)
    for (Pair& pair : group.pairs) {
      if (pair.statistics) pair.unquiet = find_unquiet(group, pair, comparison.smallest_effect);
      if (pair.statistics && pair.verdict == Verdict::inconclusive) plan_runs(pair, comparison.smallest_effect);
      pair.explanation = explain(pair, comparison.smallest_effect);
    }
}

std::string advise_runs(const Pair& pair) {
  if (!pair.statistics) return "";
  const PairStatistics& s = *pair.statistics;
  if (pair.unquiet) return fmt::format("; the runs differ too much ({}): quiet the machine first", *pair.unquiet);
  if (s.run_spread != RunSpread::assumed) return "; more runs would narrow it";
  const int64_t more = runs_that_show_spread(*pair.measured);
  return fmt::format("; {} more run{} per side would measure the spread between runs", more, more == 1 ? "" : "s");
}

void confirm_in_cycles(Pair& pair, const Contender& reference, const Contender& subject, const Margins& margins) {
  if (!pair.statistics) return;
  const auto before = count_in_cycles(reference);
  const auto after = before ? count_in_cycles(subject) : std::nullopt;
  if (!after) return;
  const auto ratio = measure_ratio(*before, *after, margins.assumed_run_spread);
  pair.statistics->cycle_ratio = to_estimate(*ratio);
  pair.statistics->cycle_verdict = judge(pair.statistics->cycle_ratio, margins.smallest_effect);
  pair.findings.push_back(describe_cycles(pair, reference, subject));
}

}  // namespace tprimat::results
