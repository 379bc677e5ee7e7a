#include "compare/copies.h"

#include <algorithm>
#include <cmath>

#include "result/summary.h"

namespace tprimat::results {
namespace {

constexpr size_t k_min_compared = 20;
constexpr double k_nearly_all = 0.9;  // of the compared

// Pairs of values, one at a time.
class Correlation {
 public:
  void add(double x, double y) {
    ++count_;
    const double from_x = x - mean_x_, from_y = y - mean_y_;
    mean_x_ += from_x / count_, mean_y_ += from_y / count_;
    xx_ += from_x * (x - mean_x_), yy_ += from_y * (y - mean_y_), xy_ += from_x * (y - mean_y_);
  }
  double count() const { return count_; }
  double coefficient() const { return xx_ > 0 && yy_ > 0 ? xy_ / std::sqrt(xx_ * yy_) : 0; }
  // Standard deviation of y around a line through the pairs.
  double left_of_y() const { return std::sqrt(std::max(0.0, yy_ - xy_ * xy_ / xx_) / count_); }

 private:
  double count_ = 0, mean_x_ = 0, mean_y_ = 0, xx_ = 0, yy_ = 0, xy_ = 0;
};

double change_at(const std::vector<double>& times, size_t i) { return times[i + 1] - times[i]; }

// Clips extreme changes, which would dominate.
Correlation correlate(const SeriesPair& pair, size_t place) {
  constexpr double k_usual = 6;
  const double most = k_usual * pair.of_longer.variation, most_of_shorter = k_usual * pair.of_shorter.variation;
  Correlation correlation;
  for (size_t i = 0; i + 1 < pair.shorter.size(); ++i) {
    const double x = change_at(pair.shorter, i), y = change_at(pair.longer, place + i);
    if (std::fabs(x) <= most_of_shorter && std::fabs(y) <= most) correlation.add(x, y);
  }
  return correlation;
}

// Of 16 changes spread over the series three quarters must have one sign, or the position is skipped.
bool may_move_alike(const SeriesPair& pair, size_t place) {
  constexpr size_t k_probes = 16;
  const size_t changes = pair.shorter.size() - 1;
  size_t alike = 0;
  for (size_t i = 0; i < k_probes; ++i) {
    const size_t at = i * changes / k_probes;
    alike += change_at(pair.shorter, at) * change_at(pair.longer, place + at) > 0;
  }
  return 4 * alike >= 3 * k_probes;
}

bool resembles_itself(const std::vector<double>& times, const SeriesTrace& trace) {
  constexpr double k_pattern = 0.8;
  for (size_t lag = 1; lag + k_min_compared < times.size(); ++lag) {
    const std::vector<double> rest(times.begin() + static_cast<std::ptrdiff_t>(lag), times.end());
    const Correlation itself = correlate({times, rest, trace, trace}, 0);
    if (itself.count() >= k_min_compared - 1 && itself.coefficient() > k_pattern) return true;
  }
  return false;
}

bool is_same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct ClockAgreement {
  size_t compared = 0, stamps = 0, losses = 0;
  bool whole_seconds = true;
  Correlation times;  // of the steady steps
};

// At common steps.
ClockAgreement compare_clocks(const RunResult& a, const RunResult& b) {
  constexpr double k_same = 1e-3;  // s
  const std::vector<double>&ours = *a.reported->unix_time, &theirs = *b.reported->unix_time;
  ClockAgreement found;
  const size_t n = std::min(ours.size(), a.step_times.size()), m = std::min(theirs.size(), b.step_times.size());
  for (size_t i = 0, k = 0; i < n && k < m;) {
    const int64_t one = step_number(a, i), other = step_number(b, k);
    if (one == other && std::isfinite(ours[i]) && std::isfinite(theirs[k])) {
      ++found.compared;
      found.stamps += std::fabs(ours[i] - theirs[k]) < k_same;
      found.losses += i < a.loss_values.size() && k < b.loss_values.size() && !std::isnan(a.loss_values[i]) &&
                      is_same_value(a.loss_values[i], b.loss_values[k]);
      if (static_cast<int64_t>(i) >= a.warmup.steps_excluded && static_cast<int64_t>(k) >= b.warmup.steps_excluded)
        found.times.add(a.step_times[i], b.step_times[k]);
      found.whole_seconds = found.whole_seconds && ours[i] == std::floor(ours[i]);
    }
    i += one <= other, k += other <= one;
  }
  return found;
}

bool have_clocks(const RunResult& a, const RunResult& b) {
  const auto has_clock = [](const RunResult& run) { return run.reported && run.reported->unix_time; };
  return has_clock(a) && has_clock(b);
}

}  // namespace

double surprise(double agreeing, double all, double p) {
  const double share = agreeing / all;
  if (share <= p) return 0;
  const double rest = share < 1 ? (1 - share) * std::log((1 - share) / (1 - p)) : 0;
  return all * (share * std::log(share / p) + rest);
}

bool shares_values(const SeriesPair& pair) {
  constexpr double k_beyond_chance = 30;  // nats
  const std::vector<double>&ours = pair.of_longer.values, &theirs = pair.of_shorter.values;
  if (theirs.size() < k_min_compared || ours.size() < k_min_compared) return false;
  // With the same digits only equal values agree.
  const double cell = pair.of_longer.rounding;
  const bool is_one_grid = pair.unit == 1 && cell == pair.of_shorter.rounding && cell > 2e-6 * pair.of_longer.typical;
  const double tolerance = is_one_grid ? cell / 100 : pair.tolerance;
  // Values that lie within the width of one, at the densest place of a normal distribution.
  const double near =
      0.4 * static_cast<double>(ours.size()) * (is_one_grid ? cell : 2 * tolerance) / pair.of_longer.spread;
  const double p = std::max(1 - std::exp(-near), pair.of_longer.repeated);
  if (!(p < 1)) return false;
  size_t agreeing = 0, i = 0;
  for (const double value : theirs) {
    while (i < ours.size() && ours[i] < value * pair.unit - tolerance) ++i;
    agreeing += i < ours.size() && ours[i] <= value * pair.unit + tolerance;
  }
  const auto all = static_cast<double>(theirs.size());
  return static_cast<double>(agreeing) >= k_nearly_all * all &&
         surprise(static_cast<double>(agreeing), all, p) >= k_beyond_chance;
}

bool shares_changes(const SeriesPair& pair) {
  constexpr double k_alike = 0.99, k_left = 5e-4, k_exact = 3e-5;
  constexpr size_t k_max_work = 1'000'000;
  const size_t n = pair.shorter.size(), places = pair.longer.size() - n + 1;
  if (n <= k_min_compared || !(pair.of_longer.variation > 4 * pair.tolerance)) return false;
  const size_t stride = places * n <= k_max_work || places == 1 ? 1 : places - 1;  // else the beginning and the end
  for (size_t place = 0; place < places; place += stride) {
    if (!may_move_alike(pair, place)) continue;
    const Correlation found = correlate(pair, place);
    const bool is_enough = found.count() >= std::max<double>(k_min_compared, 0.7 * static_cast<double>(n - 1));
    const double left = found.left_of_y() / pair.of_longer.typical;
    if (!is_enough || found.coefficient() <= k_alike || left > k_left) continue;
    const bool is_exact = std::max(left, pair.tolerance / pair.of_longer.typical) < k_exact;
    return is_exact || !resembles_itself(pair.shorter, pair.of_shorter);
  }
  return false;
}

bool shares_clock(const RunResult& a, const RunResult& b) {
  if (!have_clocks(a, b)) return false;
  const ClockAgreement found = compare_clocks(a, b);
  const auto enough = static_cast<size_t>(std::ceil(k_nearly_all * static_cast<double>(found.compared)));
  if (found.compared < k_min_compared || found.stamps < enough) return false;
  constexpr double k_related = 0.5;
  return !found.whole_seconds || (found.losses >= enough && found.times.coefficient() > k_related);
}

}  // namespace tprimat::results
