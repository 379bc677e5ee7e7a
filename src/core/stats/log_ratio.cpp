#include "stats/log_ratio.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"

namespace tprimat {
namespace {

constexpr double k_certain = 1e9;       // degrees of freedom of values that are not estimated
constexpr size_t k_enough_to_lend = 3;  // runs a side needs to lend its spread between runs

double mean_over_runs(const std::vector<MeanEstimate>& runs) {
  double sum = 0;
  for (const MeanEstimate& run : runs) sum += run.value;
  return sum / static_cast<double>(runs.size());
}

// Run means are independent, whatever happens within a run: their variance includes all noise.
RatioSide measure_side(const std::vector<MeanEstimate>& runs) {
  const double count = static_cast<double>(runs.size()), centre = mean_over_runs(runs);
  std::vector<double> shares;
  for (const MeanEstimate& run : runs) shares.push_back(run.value / centre);
  const double deviation = stddev(shares);
  return {runs.size(), deviation * deviation, deviation * deviation / count, count - 1};
}

RatioSide assume_side(const MeanEstimate& run, double assumed_spread) {
  const double within = run.variance / (run.value * run.value), between = assumed_spread * assumed_spread;
  return {1, within + between, within + between, joint_degrees(within, run.degrees_of_freedom, between, k_certain)};
}

// The lender's variance of one run, unless the single run's own noise is already more.
RatioSide borrow_side(const MeanEstimate& run, const RatioSide& lender) {
  const double within = run.variance / (run.value * run.value);
  if (within <= lender.variance_of_run) return {1, lender.variance_of_run, lender.variance_of_run, k_certain};
  return {1, within, within, run.degrees_of_freedom};
}

void fill_sides(LogRatio& ratio, const std::vector<MeanEstimate>& top, const std::vector<MeanEstimate>& bottom,
                double assumed_spread) {
  const auto fill = [&](RatioSide& side, const std::vector<MeanEstimate>& runs,
                        const std::vector<MeanEstimate>& other) {
    if (runs.size() > 1) {
      side = measure_side(runs);
    } else if (other.size() >= k_enough_to_lend) {
      side = borrow_side(runs.front(), measure_side(other));
      ratio.spread = RunSpread::borrowed;
    } else {
      side = assume_side(runs.front(), assumed_spread);
      ratio.spread = RunSpread::assumed;
    }
  };
  fill(ratio.numerator, top, bottom);
  fill(ratio.denominator, bottom, top);
}

// Welch's, but at most twice those of the smaller side: a side of two runs that happen to agree would hide behind the
// other's degrees. A borrowed variance is the lender's own once more.
double degrees_of_ratio(const LogRatio& ratio) {
  const RatioSide &a = ratio.numerator, &b = ratio.denominator;
  const double least = std::min(a.degrees_of_freedom, b.degrees_of_freedom);
  if (ratio.spread == RunSpread::borrowed) return least;
  const double welch = joint_degrees(a.variance, a.degrees_of_freedom, b.variance, b.degrees_of_freedom);
  return ratio.spread == RunSpread::measured ? std::clamp(welch, 1.0, 2 * least) : welch;
}

RatioSide with_more_runs(const RatioSide& side, size_t more) {
  const size_t runs = side.runs + more;
  const double count = static_cast<double>(runs);
  return {runs, side.variance_of_run, side.variance_of_run / count, count - 1};
}

// That the interval of a ratio of this size, measured with these sides, lies beyond or within the margin.
double chance_of_verdict(const LogRatio& ratio, const RunPlan& plan) {
  const double size = std::fabs(ratio.value), margin = std::log1p(plan.margin), error = std::sqrt(ratio.variance);
  if (size > margin) {
    const double reach = student_t_quantile(1 - plan.significance / 2, ratio.degrees_of_freedom);
    return normal_cdf((size - margin) / error - reach);
  }
  const double reach = student_t_quantile(0.975, ratio.degrees_of_freedom);
  return normal_cdf((margin - size) / error - reach) + normal_cdf((margin + size) / error - reach) - 1;
}

}  // namespace

double joint_degrees(double a, double degrees_of_a, double b, double degrees_of_b) {
  const double doubt = a * a / degrees_of_a + b * b / degrees_of_b;
  return doubt > 0 ? std::max(1.0, (a + b) * (a + b) / doubt) : k_certain;
}

LogRatio compare_means(const std::vector<MeanEstimate>& numerator, const std::vector<MeanEstimate>& denominator,
                       double assumed_spread) {
  CHECK(!numerator.empty() && !denominator.empty());
  const double top = mean_over_runs(numerator), bottom = mean_over_runs(denominator);
  CHECK(top > 0 && bottom > 0);
  LogRatio ratio;
  ratio.value = std::log(top / bottom);
  fill_sides(ratio, numerator, denominator, assumed_spread);
  ratio.variance = ratio.numerator.variance + ratio.denominator.variance;
  ratio.degrees_of_freedom = degrees_of_ratio(ratio);
  return ratio;
}

Interval ratio_interval(const LogRatio& ratio, double confidence) {
  const Interval logs = student_interval({ratio.value, ratio.variance, ratio.degrees_of_freedom}, confidence);
  return {std::exp(logs.low), std::exp(logs.high)};
}

double p_value_beyond(const LogRatio& ratio, double margin) {
  const double beyond = std::fabs(ratio.value) - std::log1p(margin);
  if (ratio.variance <= 0) return beyond > 0 ? 0 : 1;
  return std::min(1.0, 2 * student_t_tail(beyond / std::sqrt(ratio.variance), ratio.degrees_of_freedom));
}

std::optional<size_t> more_runs_to_settle(const LogRatio& ratio, const RunPlan& plan) {
  const auto settles = [&](size_t more) {
    LogRatio larger = ratio;
    larger.numerator = with_more_runs(ratio.numerator, more);
    larger.denominator = with_more_runs(ratio.denominator, more);
    larger.variance = larger.numerator.variance + larger.denominator.variance;
    larger.spread = RunSpread::measured;
    larger.degrees_of_freedom = degrees_of_ratio(larger);
    return larger.variance <= 0 || chance_of_verdict(larger, plan) >= plan.power;
  };
  if (!settles(plan.most)) return std::nullopt;
  size_t few = 0, enough = plan.most;  // the chance grows with the runs
  while (enough - few > 1) {
    const size_t middle = (few + enough) / 2;
    (settles(middle) ? enough : few) = middle;
  }
  return enough;
}

std::vector<double> adjust_p_values(std::span<const double> p_values) {
  const size_t count = p_values.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] > p_values[b]; });
  double harmonic = 0;
  for (size_t i = 1; i <= count; ++i) harmonic += 1 / static_cast<double>(i);
  std::vector<double> adjusted(count);
  double least = 1;
  for (size_t i = 0; i < count; ++i) {
    const double rank = static_cast<double>(count - i);
    least = std::min(least, p_values[order[i]] * static_cast<double>(count) * harmonic / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace tprimat
