#include "report/axis_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tprimat::results {
namespace {

// 1, 2 or 5 times a power of ten: the smallest with at most `most` steps in `span`.
double round_step(double span, double most) {
  const double power = std::pow(10.0, std::floor(std::log10(span / most)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power * most >= span) return factor * power;
  return 10 * power;
}

int magnitude(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }

// With the decimal places of the step; a very large or small axis is labelled by powers of ten.
std::string label_of(double value, double step, double largest) {
  constexpr int k_max_plain = 6, k_min_plain = -3;
  const int top = magnitude(largest), places = magnitude(step);
  if (top >= k_min_plain && top < k_max_plain) return fmt::format("{:.{}f}", value, std::max(0, -places));
  if (value == 0) return "0";
  return fmt::format("{:.{}e}", value, std::max(0, magnitude(std::fabs(value)) - places));
}

// Ends of the axis: 8 % of the values' range around them, but a few percent of the values where these hardly differ.
// More above, where a note may stand.
void set_ends(double least, double most, AxisTicks& axis) {
  constexpr double k_margin = 0.08, k_min_margin = 0.01, k_above = 1.6;
  const double size = std::max(std::fabs(least), std::fabs(most));
  if (size == 0) return;  // zero throughout: 0 to 1
  const double margin = std::max(k_margin * (most - least), k_min_margin * size);
  axis.low = least >= 0 && least < margin ? 0 : least - margin;
  axis.high = most + k_above * margin;
}

}  // namespace

AxisTicks choose_ticks(double least, double most) {
  constexpr double k_max_steps = 8;
  AxisTicks axis;
  set_ends(least, most, axis);
  const double step = round_step(axis.high - axis.low, k_max_steps);
  const double largest = std::max(std::fabs(axis.low), std::fabs(axis.high));
  for (double place = std::ceil(axis.low / step - 1e-9); place * step <= axis.high + 1e-9 * step; place += 1) {
    axis.at.push_back(place * step + 0.0);  // no -0
    axis.labels.push_back(label_of(axis.at.back(), step, largest));
  }
  return axis;
}

}  // namespace tprimat::results
