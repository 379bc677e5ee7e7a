#include "compare/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compare/contender.h"
#include "stats/log_ratio.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr double k_false_discovery_rate = 0.05;

bool names_a_winner(Verdict verdict) { return verdict == Verdict::faster || verdict == Verdict::slower; }

// Of a spread that nobody measured no number of runs follows but that which measures it.
int64_t runs_that_show_spread(const LogRatio& ratio) {
  constexpr size_t k_enough = 3;
  const size_t least = std::min(ratio.numerator.runs, ratio.denominator.runs);
  return static_cast<int64_t>(k_enough - std::min(k_enough - 1, least));
}

// Where the other pairs ask for a smaller p-value, so does the plan.
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

// All pairs of the comparison whose verdict somebody reads.
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

}  // namespace

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

std::string explain(const Pair& pair, double smallest_effect) {
  if (!pair.ratio) return "one side has no rate per device";
  if (!pair.statistics)
    return "there is no interval: one side has only averages or its framework's own rate, or fewer than five "
           "steady steps";
  std::string text = explain_interval(pair, smallest_effect) + explain_spread(*pair.statistics);
  if (pair.verdict == Verdict::inconclusive) text += explain_plan(pair);
  return text;
}

std::string advise_runs(const Pair& pair) {
  if (!pair.statistics) return "";
  const PairStatistics& s = *pair.statistics;
  if (pair.unquiet) return fmt::format("; the runs differ too much ({}): quiet the machine first", *pair.unquiet);
  if (s.run_spread != RunSpread::assumed) return "; more runs would narrow it";
  const int64_t more = runs_that_show_spread(*pair.measured);
  return fmt::format("; {} more run{} per side would measure the spread between runs", more, more == 1 ? "" : "s");
}

}  // namespace tprimat::results
