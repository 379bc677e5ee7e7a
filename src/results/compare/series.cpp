#include "compare/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

double largest_of(const Curve& curve) {
  double largest = 0;
  for (const CurvePoint& point : curve) largest = std::max(largest, std::fabs(point.value));
  return largest;
}

struct Alignment {
  size_t compared = 0, different = 0;
  double widest_gap = -1;
  SeriesGap widest;
  double share_different() const { return static_cast<double>(different) / static_cast<double>(compared); }
};

// The subject's step k + offset against the reference's step k.
Alignment align(const Curve& reference, const Curve& subject, int offset, double tolerance) {
  Alignment result;
  auto other = subject.begin();
  for (const CurvePoint& point : reference) {
    while (other != subject.end() && other->step < point.step + offset) ++other;
    if (other == subject.end()) break;
    if (other->step != point.step + offset) continue;
    const double gap = std::fabs(point.value - other->value);
    ++result.compared;
    result.different += gap > tolerance;
    if (gap > result.widest_gap) result.widest_gap = gap, result.widest = {point.step, point.value, other->value, 0};
  }
  return result;
}

// Tolerates a tenth fewer points, or one, which an offset costs two short logs.
bool compares_enough(const Alignment& alignment, size_t most) {
  return alignment.compared > 0 && (alignment.compared + 1 >= most || 10 * alignment.compared >= 9 * most);
}

struct Window {
  double mean = 0, standard_error = 0;
};

// Of curves that were sampled at the same steps; NaN where one has no value.
using Samples = std::vector<double>;

std::optional<Window> window_ending_at(const Samples& losses, size_t end, size_t width) {
  std::vector<double> values;
  for (size_t i = end - std::min(end, width); i < end; ++i)
    if (std::isfinite(losses[i])) values.push_back(losses[i]);
  if (values.empty()) return std::nullopt;
  return Window{mean(values), stddev(values) / std::sqrt(static_cast<double>(values.size()))};
}

size_t window_width(size_t count) { return std::clamp<size_t>(count / 10, 1, 20); }

// Of several runs: their mean, with the spread between them where there are two, else that of the steps.
std::optional<Window> window_of_runs(const std::vector<Samples>& runs, size_t end, size_t width) {
  std::vector<double> means;
  double within = 0;
  for (const Samples& losses : runs) {
    const auto window = window_ending_at(losses, end, width);
    if (!window) continue;
    means.push_back(window->mean);
    within = std::hypot(within, window->standard_error);
  }
  if (means.empty()) return std::nullopt;
  const double count = static_cast<double>(means.size());
  return Window{mean(means), std::max(within / count, stddev(means) / std::sqrt(count))};
}

// The steps of the sparsest curve, from where all have begun to where the first one ends.
std::vector<int64_t> common_steps(const Curves& reference, const Curves& subject) {
  int64_t first = std::numeric_limits<int64_t>::min(), last = std::numeric_limits<int64_t>::max();
  for (const Curves* side : {&reference, &subject})
    for (const Curve& curve : *side) {
      if (curve.empty()) return {};
      first = std::max(first, curve.front().step), last = std::min(last, curve.back().step);
    }
  std::optional<std::vector<int64_t>> fewest;
  for (const Curves* side : {&reference, &subject})
    for (const Curve& curve : *side) {
      std::vector<int64_t> steps;
      for (const CurvePoint& point : curve)
        if (point.step >= first && point.step <= last) steps.push_back(point.step);
      if (!fewest || steps.size() < fewest->size()) fewest = std::move(steps);
    }
  return fewest.value_or(std::vector<int64_t>());
}

// At each step the newest value since the step before; at the first, since as long before it as the second comes after.
Samples sample_curve(const Curve& curve, const std::vector<int64_t>& steps) {
  Samples samples;
  int64_t before = steps.size() < 2 ? steps.front() - 1 : steps[0] - (steps[1] - steps[0]);
  auto point = curve.begin();
  for (const int64_t step : steps) {
    double newest = std::nan("");
    for (; point != curve.end() && point->step <= step; ++point)
      if (point->step > before) newest = point->value;
    samples.push_back(newest);
    before = step;
  }
  return samples;
}

std::vector<Samples> sample_curves(const Curves& curves, const std::vector<int64_t>& steps) {
  std::vector<Samples> samples;
  for (const Curve& curve : curves) samples.push_back(sample_curve(curve, steps));
  return samples;
}

Samples values_of(const Curve& curve) {
  Samples values;
  for (const CurvePoint& point : curve) values.push_back(point.value);
  return values;
}

double allowed_gap(const Window& a, const Window& b, double tolerance) {
  return std::max(3 * std::hypot(a.standard_error, b.standard_error),
                  tolerance * std::max(std::fabs(a.mean), std::fabs(b.mean)));
}

}  // namespace

Curve curve_by_step(const RunResult& run, const std::vector<double>& values) {
  const bool is_numbered = run.steps && run.steps->numbers && values.size() == run.step_times.size();
  const int64_t before_first = is_numbered ? run.steps->counts_from - 1 : 0;
  Curve curve;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]))
      curve.push_back({is_numbered ? step_number(run, i) - before_first : static_cast<int64_t>(i) + 1, values[i]});
  std::ranges::stable_sort(curve, [](const auto& a, const auto& b) { return a.step < b.step; });
  const auto is_repeated = [](const auto& later, const auto& earlier) { return later.step == earlier.step; };
  curve.erase(curve.begin(), std::unique(curve.rbegin(), curve.rend(), is_repeated).base());
  return curve;
}

SeriesComparison compare_learning_rates(const Curve& reference, const Curve& subject) {
  const double tolerance = 0.02 * std::max(largest_of(reference), largest_of(subject));
  std::vector<Alignment> alignments;
  size_t most = 0;
  for (const int offset : {0, -1, 1}) {
    alignments.push_back(align(reference, subject, offset, tolerance));
    most = std::max(most, alignments.back().compared);
  }
  const Alignment* best = nullptr;
  for (const Alignment& each : alignments)
    if (compares_enough(each, most) && (!best || each.share_different() < best->share_different())) best = &each;
  if (!best) return {};
  return {best->compared, best->share_different() > 0.05 ? std::optional(best->widest) : std::nullopt};
}

SeriesComparison compare_losses(const Curves& reference, const Curves& subject,
                                const std::optional<double>& tolerance) {
  constexpr size_t k_runs_that_teach = 3, k_fewest_points = 5;
  if (reference.empty() || subject.empty()) return {};
  const std::vector<int64_t> steps = common_steps(reference, subject);
  if (steps.size() < k_fewest_points) return {};
  const std::vector<Samples> before = sample_curves(reference, steps), after = sample_curves(subject, steps);
  const bool learned = std::min(reference.size(), subject.size()) >= k_runs_that_teach;
  const double share = tolerance.value_or(learned ? 0.01 : 0.05);
  const size_t width = window_width(steps.size());
  SeriesComparison result;
  size_t apart = 0;
  bool at_the_end = false;
  for (size_t quarter = 1; quarter <= 4; ++quarter) {
    const size_t end = std::max<size_t>(1, steps.size() * quarter / 4);
    const auto a = window_of_runs(before, end, width), b = window_of_runs(after, end, width);
    if (!a || !b) continue;
    ++result.compared;
    if (std::fabs(a->mean - b->mean) <= allowed_gap(*a, *b, share)) continue;
    result.gap = SeriesGap{steps[end - 1], a->mean, b->mean, allowed_gap(*a, *b, share)};
    ++apart;
    at_the_end = quarter == 4;
  }
  if (!at_the_end && apart < 2) result.gap.reset();
  return result;
}

std::optional<SeriesGap> find_loss_divergence(const Curve& losses) {
  constexpr double k_rise = 0.1;
  if (losses.size() < 20) return std::nullopt;
  const Samples values = values_of(losses);
  const size_t width = losses.size() / 10;
  std::optional<Window> lowest, last;
  int64_t at = 0;
  for (size_t end = width; end <= losses.size(); end += width) {
    last = window_ending_at(values, end, width);
    if (!lowest || last->mean < lowest->mean) lowest = last, at = losses[end - 1].step;
  }
  if (last->mean - lowest->mean <= allowed_gap(*lowest, *last, k_rise)) return std::nullopt;
  return SeriesGap{at, lowest->mean, last->mean, 0};
}

std::optional<double> find_loss_collapse(const Curve& losses) {
  if (losses.size() < 5) return std::nullopt;
  const Samples values = values_of(losses);
  const size_t width = window_width(losses.size());
  const auto start = window_ending_at(values, width, width), end = window_ending_at(values, losses.size(), width);
  if (start->mean < 1 || end->mean >= k_collapsed_loss) return std::nullopt;
  return end->mean;
}

std::optional<double> find_loss_of_guessing(const Curve& losses, int64_t vocabulary) {
  constexpr size_t k_enough = 50;
  constexpr double k_margin = 0.05;  // nats; learning the token frequencies in the first updates gains more
  if (losses.size() < k_enough || vocabulary < 2) return std::nullopt;
  const auto end = window_ending_at(values_of(losses), losses.size(), window_width(losses.size()));
  if (end->mean < std::log(static_cast<double>(vocabulary)) - k_margin) return std::nullopt;
  return end->mean;
}

}  // namespace tprimat::results
