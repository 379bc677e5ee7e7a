#include "compare/series.h"

#include <algorithm>
#include <cmath>

#include "stats/descriptive.h"

namespace tprimat {
namespace {

double peak_of(const std::vector<double>& values) {
  double peak = 0;
  for (const double value : values)
    if (std::isfinite(value)) peak = std::max(peak, std::fabs(value));
  return peak;
}

struct Alignment {
  double share_different = 1;
  SeriesGap widest;
};

// subject[i + offset] against reference[i]
Alignment align(const std::vector<double>& reference, const std::vector<double>& subject, int offset,
                double tolerance) {
  Alignment result;
  size_t compared = 0, different = 0;
  double widest = -1;
  for (size_t i = 0; i < reference.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i) + offset;
    if (at < 0 || at >= std::ssize(subject)) continue;
    const double gap = std::fabs(reference[i] - subject[static_cast<size_t>(at)]);
    if (!std::isfinite(gap)) continue;
    ++compared;
    different += gap > tolerance;
    if (gap > widest) widest = gap, result.widest = {i + 1, reference[i], subject[static_cast<size_t>(at)]};
  }
  result.share_different = compared > 0 ? static_cast<double>(different) / static_cast<double>(compared) : 0;
  return result;
}

struct Window {
  double mean = 0, standard_error = 0;
};

std::optional<Window> window_ending_at(const std::vector<double>& losses, size_t end, size_t width) {
  std::vector<double> values;
  for (size_t i = end - std::min(end, width); i < end; ++i)
    if (std::isfinite(losses[i])) values.push_back(losses[i]);
  if (values.empty()) return std::nullopt;
  return Window{mean(values), stddev(values) / std::sqrt(static_cast<double>(values.size()))};
}

size_t window_width(size_t count) { return std::clamp<size_t>(count / 10, 1, 20); }

// Of several runs: their mean, with the spread between them where there are two, else that of the steps.
std::optional<Window> window_of_runs(const Curves& curves, size_t end, size_t width) {
  std::vector<double> means;
  double within = 0;
  for (const auto& losses : curves) {
    const auto window = window_ending_at(losses, end, width);
    if (!window) continue;
    means.push_back(window->mean);
    within = std::hypot(within, window->standard_error);
  }
  if (means.empty()) return std::nullopt;
  const double runs = static_cast<double>(means.size());
  return Window{mean(means), std::max(within / runs, stddev(means) / std::sqrt(runs))};
}

double allowed_gap(const Window& a, const Window& b, double tolerance) {
  return std::max(3 * std::hypot(a.standard_error, b.standard_error),
                  tolerance * std::max(std::fabs(a.mean), std::fabs(b.mean)));
}

size_t shortest(const Curves& curves) {
  size_t count = curves.empty() ? 0 : curves.front().size();
  for (const auto& losses : curves) count = std::min(count, losses.size());
  return count;
}

}  // namespace

std::optional<SeriesGap> find_learning_rate_gap(const std::vector<double>& reference,
                                                const std::vector<double>& subject) {
  const double tolerance = 0.02 * std::max(peak_of(reference), peak_of(subject));
  if (reference.empty() || subject.empty() || tolerance == 0) return std::nullopt;
  Alignment best = align(reference, subject, 0, tolerance);
  for (const int offset : {-1, 1}) {
    const Alignment other = align(reference, subject, offset, tolerance);
    if (other.share_different < best.share_different) best = other;
  }
  if (best.share_different <= 0.05) return std::nullopt;
  return best.widest;
}

std::optional<SeriesGap> find_loss_gap(const Curves& reference, const Curves& subject,
                                       const std::optional<double>& tolerance) {
  constexpr size_t k_runs_that_teach = 3;
  const size_t count = std::min(shortest(reference), shortest(subject));
  if (count < 5) return std::nullopt;
  const bool learned = std::min(reference.size(), subject.size()) >= k_runs_that_teach;
  const double share = tolerance.value_or(learned ? 0.01 : 0.05);
  const size_t width = window_width(count);
  std::optional<SeriesGap> gap;
  size_t points = 0;
  bool at_the_end = false;
  for (size_t quarter = 1; quarter <= 4; ++quarter) {
    const size_t end = std::max<size_t>(1, count * quarter / 4);
    const auto a = window_of_runs(reference, end, width), b = window_of_runs(subject, end, width);
    if (!a || !b || std::fabs(a->mean - b->mean) <= allowed_gap(*a, *b, share)) continue;
    gap = SeriesGap{end, a->mean, b->mean, allowed_gap(*a, *b, share)};
    ++points;
    at_the_end = quarter == 4;
  }
  return at_the_end || points >= 2 ? gap : std::nullopt;
}

std::optional<SeriesGap> find_loss_divergence(const std::vector<double>& losses) {
  constexpr double k_rise = 0.1;
  if (losses.size() < 20) return std::nullopt;
  const size_t width = losses.size() / 10;
  std::optional<Window> lowest, last;
  size_t at = 0;
  for (size_t end = width; end <= losses.size(); end += width) {
    const auto window = window_ending_at(losses, end, width);
    if (!window) continue;
    if (!lowest || window->mean < lowest->mean) lowest = window, at = end;
    last = window;
  }
  if (!lowest || last->mean - lowest->mean <= allowed_gap(*lowest, *last, k_rise)) return std::nullopt;
  return SeriesGap{at, lowest->mean, last->mean};
}

std::optional<double> find_loss_collapse(const std::vector<double>& losses) {
  if (losses.size() < 5) return std::nullopt;
  const size_t width = window_width(losses.size());
  const auto start = window_ending_at(losses, width, width), end = window_ending_at(losses, losses.size(), width);
  if (!start || !end || start->mean < 1 || end->mean >= k_collapsed_loss) return std::nullopt;
  return end->mean;
}

}  // namespace tprimat
