#include "published/cells.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "spec/tsv_rows.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

constexpr size_t k_max_digits = 40;
constexpr double k_largest = 1e18;

// Digits with at most one point.
bool is_decimal(std::string_view text) {
  return !text.empty() && text.size() <= k_max_digits && text.front() != '.' && std::ranges::count(text, '.') <= 1 &&
         std::ranges::all_of(text, [](char c) { return c == '.' || is_digit(c); });
}

// Rounding in binary must not move a figure outside the interval of its own printed digits.
constexpr double k_slack = 1e-9;

}  // namespace

std::vector<std::string> find_in_cell(const PublishedRow& row, const std::string& column, const char* pattern) {
  thread_local std::map<std::string, std::regex> compiled;
  const std::regex& wanted = compiled.try_emplace(pattern, pattern).first->second;
  const std::string text = row.cell(column).substr(0, 1000);
  std::smatch match;
  if (!std::regex_search(text, match, wanted)) return {};
  return {match.begin() + 1, match.end()};
}

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
  printed.value = parse_number<double>(text).value_or(0);
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

std::string lower_text(std::string_view text) { return lower_case(text.substr(0, 4096)); }

std::string fold_gpu_name(std::string_view name) {
  std::string folded = fold_name(name.substr(0, 200));
  for (const std::string_view word : {"nvlink", "nvl72", "nvl36"})
    if (const size_t at = folded.find(word); at != std::string::npos) folded.erase(at, word.size());
  return folded;
}

bool mentions(const std::string& lower, std::string_view word) { return lower.find(word) != std::string::npos; }

std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column) {
  constexpr double k_max_count = 1 << 24;
  const auto printed = parse_printed(row.cell(column));
  if (!printed || printed->approximate || printed->value < 1 || printed->value > k_max_count) return std::nullopt;
  if (printed->value != std::floor(printed->value)) return std::nullopt;
  return static_cast<int64_t>(printed->value);
}

}  // namespace tprimat::planner
