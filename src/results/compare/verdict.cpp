#include "compare/verdict.h"

#include <algorithm>
#include <cmath>

#include "compare/contender.h"
#include "compare/plausibility.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "stats/mean_estimate.h"

namespace tprimat::results {
namespace {

// A rate that does not come from the step times (a file with averages only) has no interval of its own.
bool has_interval(const RunResult& run) {
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  return rate && rate->low && rate->value > 0 && !steady_step_times(run).empty();
}

// Tokens of one step per device, as the rate implies them: a file may contradict its own batch.
double work_per_step(const RunResult& result) {
  return result.derived.tokens_per_second_per_gpu->value * mean(steady_step_times(result));
}

// A log that rounds its step times by more than they vary has the same error at every step, which averaging does not
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
  return first && contender.runs.size() > 1 &&
         std::all_of(contender.runs.begin(), contender.runs.end(),
                     [&](const LoadedRun& run) { return find_constant_time(run.result) == first; });
}

}  // namespace

std::optional<Estimate> estimate_ratio_by_figures(const Estimate& reference, const Estimate& subject) {
  if (reference.value <= 0) return std::nullopt;
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

std::optional<Estimate> estimate_ratio(const RateEvidence& reference, const RateEvidence& subject,
                                       const std::optional<LogRatio>& measured) {
  if (!reference.rate || !subject.rate || *reference.rate <= 0) return std::nullopt;
  return measured ? to_estimate(*measured) : Estimate{*subject.rate / *reference.rate, {}, {}};
}

std::optional<Estimate> estimate_ratio(const Contender& reference, const Contender& subject) {
  const RateEvidence before = gather_evidence(reference), after = gather_evidence(subject);
  return estimate_ratio(before, after, measure_ratio(before, after));
}

Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect) {
  if (!ratio || !ratio->low || !ratio->high) return Verdict::inconclusive;
  const double above = 1 + smallest_effect, below = 1 / above;
  if (*ratio->low > above) return Verdict::faster;
  if (*ratio->high < below) return Verdict::slower;
  return *ratio->low >= below && *ratio->high <= above ? Verdict::same : Verdict::inconclusive;
}

}  // namespace tprimat::results
