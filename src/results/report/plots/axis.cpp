#include "report/plots/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/format.h"

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

// 2.50e-04 -> 2.50e-4
std::string write_power(double value, int decimals) {
  const int power = magnitude(std::fabs(value));
  return fmt::format("{:.{}f}e{}", value / std::pow(10.0, power), decimals, power);
}

// 25000 -> 25k; with the digits of the step.
std::string shorten_number(double value, int places) {
  for (const auto& [size, suffix] : {std::pair{12, "T"}, {9, "G"}, {6, "M"}, {3, "k"}})
    if (std::fabs(value) >= std::pow(10.0, size) * (1 - 1e-9))
      return fmt::format("{:.{}f}{}", value / std::pow(10.0, size), std::max(0, size - places), suffix);
  return fmt::format("{:.{}f}", value, std::max(0, -places));
}

// With the decimal places of the step; a very large or small axis is labelled by powers of ten.
std::string label_of(double value, double step, double largest, bool is_shortened) {
  constexpr int k_max_plain = 6, k_max_short = 15, k_min_plain = -3;
  const int top = magnitude(largest), places = magnitude(step);
  if (value == 0)
    return top >= k_min_plain && top < k_max_plain ? fmt::format("{:.{}f}", 0.0, std::max(0, -places)) : "0";
  if (is_shortened && top >= k_min_plain && top < k_max_short) return shorten_number(value, places);
  if (top >= k_min_plain && top < k_max_plain) return fmt::format("{:.{}f}", value, std::max(0, -places));
  return write_power(value, std::max(0, magnitude(std::fabs(value)) - places));
}

// Ends of the axis: 8 % of the values' range around them, but a few percent of the values where these hardly differ.
Range widen(const Range& data) {
  constexpr double k_margin = 0.08, k_min_margin = 0.01;
  const double size = std::max(std::fabs(data.low), std::fabs(data.high));
  if (size == 0) return {0, 1};
  const double margin = std::max(k_margin * (data.high - data.low), k_min_margin * size);
  return {data.low >= 0 && data.low < margin ? 0 : data.low - margin, data.high + margin};
}

Range widen_logarithmic(const Range& data) { return {data.low / 1.2, data.high * 1.2}; }

AxisTicks linear_ticks(const Axis& axis, const Range& range, int max_steps) {
  AxisTicks ticks{range.low, range.high, {}, {}};
  double step = round_step(range.high - range.low, max_steps);
  if (axis.is_whole) step = std::max(1.0, step);
  const double largest = std::max(std::fabs(range.low), std::fabs(range.high));
  for (double place = std::ceil(range.low / step - 1e-9); place * step <= range.high + 1e-9 * step; place += 1) {
    ticks.at.push_back(place * step + 0.0);  // no -0
    ticks.labels.push_back(label_of(ticks.at.back(), step, largest, false));
  }
  return ticks;
}

void add_tick(AxisTicks& ticks, double value) {
  if (value < ticks.low * (1 - 1e-9) || value > ticks.high * (1 + 1e-9)) return;
  ticks.at.push_back(value);
  const double step = std::pow(10.0, magnitude(value));
  ticks.labels.push_back(label_of(value, step, value, true));
}

// At the factors of every power of ten whose exponent is a multiple of `stride`.
AxisTicks decade_ticks(const Range& range, const std::vector<double>& factors, int stride) {
  AxisTicks ticks{range.low, range.high, {}, {}};
  for (int power = magnitude(range.low) / stride * stride - stride; power <= magnitude(range.high); power += stride)
    for (const double factor : factors) add_tick(ticks, factor * std::pow(10.0, power));
  return ticks;
}

AxisTicks given_ticks(const Axis& axis, const Range& range, size_t stride) {
  AxisTicks ticks{range.low, range.high, {}, {}};
  for (size_t i = 0; i < axis.ticks.size(); i += stride) {
    if (axis.ticks[i] < range.low || axis.ticks[i] > range.high) continue;
    ticks.at.push_back(axis.ticks[i]);
    ticks.labels.push_back(fmt::format("{:.10g}", axis.ticks[i]));
  }
  return ticks;
}

// From dense to sparse.
std::vector<AxisTicks> list_choices(const Axis& axis, const Range& range) {
  std::vector<AxisTicks> choices;
  for (size_t stride = 1; stride <= axis.ticks.size(); stride *= 2) choices.push_back(given_ticks(axis, range, stride));
  if (!choices.empty()) return choices;
  if (axis.scale == Scale::logarithmic && range.high / range.low >= 4) {
    choices.push_back(decade_ticks(range, {1, 2, 5}, 1));
    choices.push_back(decade_ticks(range, {1, 3}, 1));
    for (int stride = 1; stride <= 256; stride *= 2) choices.push_back(decade_ticks(range, {1}, stride));
    std::erase_if(choices, [](const AxisTicks& ticks) { return ticks.at.size() < 2; });
  }
  if (choices.empty() || axis.scale == Scale::linear)
    for (int steps = 8; steps >= 1; --steps) choices.push_back(linear_ticks(axis, range, steps));
  return choices;
}

}  // namespace

bool is_drawable(double value, Scale scale) {
  constexpr double k_max = 1e300, k_min_logarithmic = 1e-300;  // differences and margins stay finite
  return std::fabs(value) < k_max && (scale == Scale::linear || value > k_min_logarithmic);
}

void Range::include(double value, Scale scale) {
  if (is_drawable(value, scale)) low = std::min(low, value), high = std::max(high, value);
}

AxisTicks choose_ticks(double least, double most, int max_steps) {
  return linear_ticks({}, widen({least, most}), max_steps);
}

Range choose_range(const Axis& axis, const Range& data) {
  const bool is_linear = axis.scale == Scale::linear;
  Range range = data.is_empty() ? (is_linear ? Range{0, 1} : Range{1, 10})
                : is_linear     ? widen(data)
                                : widen_logarithmic(data);
  if (axis.low && is_drawable(*axis.low, axis.scale)) range.low = *axis.low;
  if (axis.high && is_drawable(*axis.high, axis.scale)) range.high = *axis.high;
  if (range.low < range.high) return range;
  const double size = std::max({std::fabs(range.low), std::fabs(range.high), 1e-9});
  return is_linear ? Range{range.low, range.low + size} : Range{range.low, range.low * 10};
}

AxisTicks choose_ticks(const Axis& axis, const Range& range, const std::function<bool(const AxisTicks&)>& fits) {
  AxisTicks ticks{range.low, range.high, {}, {}};
  for (AxisTicks& choice : list_choices(axis, range)) {
    ticks = std::move(choice);
    if (!ticks.at.empty() && fits(ticks)) return ticks;
  }
  ticks.at.resize(std::min<size_t>(1, ticks.at.size()));
  ticks.labels.resize(ticks.at.size());
  return ticks;
}

double AxisMap::operator()(double value) const {
  const auto place = [&](double of) { return scale == Scale::linear ? of : std::log10(of); };
  const double share = (place(value) - place(range.low)) / (place(range.high) - place(range.low));
  constexpr double k_far = 1e4;  // as far beyond the axis as a clipped line can matter
  return from + (to - from) * std::clamp(share, -k_far, k_far);
}

bool AxisMap::contains(double value) const {
  return is_drawable(value, scale) && value >= range.low && value <= range.high;
}

}  // namespace tprimat::results
