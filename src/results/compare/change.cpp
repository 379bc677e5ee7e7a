#include "compare/change.h"

#include <cmath>

#include "compare/contender.h"
#include "compare/verdict.h"
#include "stats/mean_estimate.h"

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

// What follows from the steps has one interval, however it is told.
Estimate share_of(const Estimate& before, const Estimate& share) {
  Estimate difference{before.value * share.value, {}, {}};
  if (share.low && share.high && before.value > 0)
    difference.low = before.value * *share.low, difference.high = before.value * *share.high;
  return difference;
}

std::optional<Estimate> less_one(std::optional<Estimate> ratio) {
  if (!ratio || !std::isfinite(ratio->value)) return std::nullopt;
  ratio->value -= 1;
  if (ratio->low && ratio->high) *ratio->low -= 1, *ratio->high -= 1;
  return ratio;
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
  change.share = less_one(change.follows_from_steps ? ratio_by_steps(group, pair, metric)
                                                    : estimate_ratio_by_figures(*change.before, *change.after));
  if (change.follows_from_steps && change.share) change.difference = share_of(*change.before, *change.share);
  return change;
}

}  // namespace tprimat::results
