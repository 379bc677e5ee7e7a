#include "compare/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "compare/contender.h"
#include "result/summary.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"
#include "stats/interval_arithmetic.h"
#include "text/format.h"

namespace tprimat {
namespace {

Runs steady_runs(const Contender& contender) {
  Runs runs;
  for (const LoadedRun& run : contender.runs) runs.push_back(steady_step_times(run.result));
  return runs;
}

// A rate that does not come from the step times (a file with averages only) has no interval of its own.
bool has_interval(const Contender& contender) {
  return std::all_of(contender.runs.begin(), contender.runs.end(), [](const LoadedRun& run) {
    const auto& rate = run.result.derived.tokens_per_second_per_gpu;
    return rate && rate->low && rate->value > 0 && !steady_step_times(run.result).empty();
  });
}

double mean_of_runs(const Runs& runs) {
  std::vector<double> means;
  for (const auto& run : runs) means.push_back(mean(run));
  return mean(means);
}

// Tokens of one step per device, as the rate implies them: a file may contradict its own batch.
double work_per_step(const RunResult& result) {
  return result.derived.tokens_per_second_per_gpu->value * mean(steady_step_times(result));
}

// With more runs than this on a side, the spread between them is all that matters, and resampling takes minutes.
constexpr size_t k_most_resampled_runs = 100;

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

std::optional<Estimate> estimate_ratio(const Contender& reference, const Contender& subject) {
  const Metric& headline = metrics().front();
  const auto low_rate = read_figure(reference, headline), high_rate = read_figure(subject, headline);
  if (!low_rate || !high_rate || low_rate->value <= 0) return std::nullopt;
  if (!has_interval(reference) || !has_interval(subject)) return Estimate{high_rate->value / low_rate->value, {}, {}};
  if (std::max(reference.runs.size(), subject.runs.size()) > k_most_resampled_runs)
    return estimate_ratio_by_figures(*low_rate, *high_rate);
  const Runs before = steady_runs(reference), after = steady_runs(subject);
  const double scale = work_per_step(subject.first()) / work_per_step(reference.first());
  Estimate ratio{scale * mean_of_runs(before) / mean_of_runs(after), {}, {}};
  if (const auto interval = bootstrap_ratio(before, after, scale))
    ratio.low = interval->low, ratio.high = interval->high;
  return ratio;
}

Verdict judge(const std::optional<Estimate>& ratio, double smallest_effect) {
  if (!ratio || !ratio->low || !ratio->high) return Verdict::inconclusive;
  const double above = 1 + smallest_effect, below = 1 / above;
  if (*ratio->low > above) return Verdict::faster;
  if (*ratio->high < below) return Verdict::slower;
  return *ratio->low >= below && *ratio->high <= above ? Verdict::same : Verdict::inconclusive;
}

std::string explain(const std::optional<Estimate>& ratio, double smallest_effect) {
  if (!ratio) return "a side has no rate per device";
  if (!ratio->low || !ratio->high)
    return "there is no interval: a side has averages only, or fewer than five steady steps";
  const char* where = "";
  switch (judge(ratio, smallest_effect)) {
    case Verdict::faster:
    case Verdict::slower: where = "lies beyond"; break;
    case Verdict::same: where = "lies within"; break;
    case Verdict::inconclusive: where = "reaches across"; break;
  }
  return fmt::format("the interval {:.4g} to {:.4g} {} {}", *ratio->low, *ratio->high, where,
                     format_percent(smallest_effect, 0));
}

}  // namespace tprimat
