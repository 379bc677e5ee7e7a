#include "stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "stats/autocorrelation.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

double noise_of(std::span<const double> values) {
  std::vector<double> differences;
  for (size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  const double sigma = k_mad_to_sigma * median_absolute_deviation(differences) / std::numbers::sqrt2;
  return std::max(sigma, 1e-4 * std::fabs(median(values)));  // figures that hardly vary have no noise worth a price
}

std::vector<double> draw_in(std::span<const double> values, double sigma) {
  std::vector<double> drawn;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = std::min(i - std::min<size_t>(i, 2), values.size() - 5);
    const double centre = median(values.subspan(begin, 5));
    drawn.push_back(std::clamp(values[i], centre - 3 * sigma, centre + 3 * sigma));
  }
  return drawn;
}

// Sums for the squared error of any segment in O(1).
class SquaredError {
 public:
  explicit SquaredError(const std::vector<double>& values) : sum_{0}, squares_{0} {
    const double centre = mean(values);  // keeps the sums small
    for (const double value : values) {
      sum_.push_back(sum_.back() + value - centre);
      squares_.push_back(squares_.back() + (value - centre) * (value - centre));
    }
  }
  double of(size_t begin, size_t end) const {
    const double sum = sum_[end] - sum_[begin];
    return squares_[end] - squares_[begin] - sum * sum / static_cast<double>(end - begin);
  }

 private:
  std::vector<double> sum_, squares_;
};

// First values of the segments after the first.
std::vector<size_t> segment(const std::vector<double>& values, double price, size_t shortest) {
  const SquaredError error(values);
  const size_t n = values.size();
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> previous(n + 1, 0), starts{0};
  best[0] = -price;
  for (size_t end = shortest; end <= n; ++end) {
    if (end >= 2 * shortest) starts.push_back(end - shortest);
    for (const size_t start : starts) {
      const double cost = best[start] + error.of(start, end) + price;
      if (cost < best[end]) best[end] = cost, previous[end] = start;
    }
    std::erase_if(starts, [&](size_t start) { return best[start] + error.of(start, end) > best[end]; });
  }
  std::vector<size_t> shifts;
  for (size_t at = previous[n]; at > 0; at = previous[at]) shifts.push_back(at);
  std::reverse(shifts.begin(), shifts.end());
  return shifts;
}

std::vector<LevelShift> describe_shifts(std::span<const double> values, const std::vector<size_t>& shifts) {
  std::vector<LevelShift> described;
  for (size_t i = 0; i < shifts.size(); ++i) {
    const size_t begin = i > 0 ? shifts[i - 1] : 0, end = i + 1 < shifts.size() ? shifts[i + 1] : values.size();
    described.push_back({shifts[i], median(values.subspan(begin, shifts[i] - begin)),
                         median(values.subspan(shifts[i], end - shifts[i]))});
  }
  return described;
}

double relative_change(const LevelShift& shift) {
  return std::fabs(shift.after - shift.before) / std::max(std::fabs(shift.before), std::numeric_limits<double>::min());
}

double memory_of_residuals(const std::vector<double>& values, const std::vector<size_t>& shifts) {
  std::vector<double> residuals;
  for (size_t i = 0; i <= shifts.size(); ++i) {
    const size_t begin = i > 0 ? shifts[i - 1] : 0, end = i < shifts.size() ? shifts[i] : values.size();
    const double centre = mean(std::span(values).subspan(begin, end - begin));
    for (size_t k = begin; k < end; ++k) residuals.push_back(values[k] - centre);
  }
  return std::clamp(autocorrelation(residuals, 1), 0.0, 0.8);
}

}  // namespace

std::vector<LevelShift> find_level_shifts(std::span<const double> values, const ChangePointOptions& options) {
  const size_t shortest = std::max<size_t>(2, options.min_segment);
  if (values.size() < std::max<size_t>(5, 2 * shortest)) return {};
  const double sigma = noise_of(values);
  const std::vector<double> drawn = draw_in(values, sigma);
  const double price = 3 * sigma * sigma * std::log(static_cast<double>(values.size()));
  const double memory = memory_of_residuals(drawn, segment(drawn, price, shortest));
  std::vector<size_t> at = segment(drawn, price * (1 + memory) / (1 - memory), shortest);
  while (true) {
    const std::vector<LevelShift> shifts = describe_shifts(values, at);
    const auto smallest = std::min_element(shifts.begin(), shifts.end(), [](const auto& a, const auto& b) {
      return relative_change(a) < relative_change(b);
    });
    if (smallest == shifts.end() || relative_change(*smallest) >= options.min_relative_change) return shifts;
    at.erase(at.begin() + (smallest - shifts.begin()));
  }
}

}  // namespace tprimat
