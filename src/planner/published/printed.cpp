#include "published/printed.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tprimat::planner {
namespace {

constexpr size_t k_max_digits = 40;
constexpr double k_largest = 1e18;

// Digits with at most one point.
bool is_decimal(std::string_view text) {
  return !text.empty() && text.size() <= k_max_digits && text.front() != '.' &&
         std::count(text.begin(), text.end(), '.') <= 1 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// Rounding in binary must not put a figure outside of what it itself is printed as.
constexpr double k_slack = 1e-9;

}  // namespace

Bounds operator*(const Bounds& interval, double factor) { return {interval.low * factor, interval.high * factor}; }
Bounds operator/(const Bounds& numerator, const Bounds& denominator) {
  return {numerator.low / denominator.high, numerator.high / denominator.low};
}

Bounds Printed::rounded() const {
  const double below = std::min(approximate ? unit : unit / 2, value / 2);  // a lower bound of 0 would say nothing
  return {(value - below) * (1 - k_slack), (value + (approximate ? unit : unit / 2)) * (1 + k_slack)};
}
Bounds Printed::cut() const { return {value * (1 - k_slack), (value + unit) * (1 + k_slack)}; }
Bounds Printed::either() const { return {rounded().low, cut().high}; }

std::optional<Printed> parse_printed(std::string_view text) {
  Printed printed;
  if (text.starts_with('~')) {
    printed.approximate = true;
    text.remove_prefix(1);
  }
  if (!is_decimal(text)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), printed.value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(printed.value > 0 && printed.value <= k_largest)) return std::nullopt;
  const size_t point = text.find('.');
  const size_t decimals = point == std::string_view::npos ? 0 : text.size() - point - 1;
  printed.unit = std::pow(10.0, -static_cast<double>(decimals));
  return printed;
}

std::optional<Printed> parse_printed_count(std::string_view text) {
  double scale = 1;
  if (text.ends_with('M')) scale = 1e6;
  if (text.ends_with('B')) scale = 1e9;
  if (text.ends_with('T')) scale = 1e12;
  if (scale > 1) text.remove_suffix(1);
  std::optional<Printed> printed = parse_printed(text);
  if (printed) printed->value *= scale, printed->unit *= scale;
  return printed;
}

}  // namespace tprimat::planner
