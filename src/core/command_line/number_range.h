#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/printable.h"
#include "command_line/options.h"

namespace tprimat {

// A larger count (of steps, nodes, checkpoints) is a typing error.
inline constexpr int64_t k_max_count = int64_t{1} << 30;

// Unlike CLI::Range, refuses NaN and text, and prints bounds as people write them. Integer bounds require an integer.
template <typename Number>
Check number_from(Number low, Number high) {
  return [low, high](std::string& text) -> std::string {
    Number value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && stop == text.data() + text.size();
    if (is_number && value >= low && value <= high) return "";
    return fmt::format("'{}' is not a {}number from {} to {}", printable(text.substr(0, 64)),
                       std::is_integral_v<Number> ? "whole " : "", low, high);
  };
}

inline constexpr double k_max_seconds = 1e9;  // 31 years

// Rewrites 90, 90s, 30m, 30min and 2h as seconds, 0 to k_max_seconds.
inline Check time_in_seconds() {
  return [](std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    std::string_view unit(stop, static_cast<size_t>(end - stop));
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    const double seconds = unit.empty() || unit == "s"    ? value
                           : unit == "m" || unit == "min" ? 60.0 * value
                           : unit == "h"                  ? 3600.0 * value
                                                          : -1.0;
    if (error != std::errc() || !(seconds >= 0.0 && seconds <= k_max_seconds))
      return fmt::format("'{}' is not a time: give a number from 0 to {:.0f} s, such as 90, 90s, 30m or 2h",
                         printable(text.substr(0, 64)), k_max_seconds);
    text = fmt::format("{}", seconds);
    return "";
  };
}

inline Check positive_count() { return number_from<int64_t>(1, k_max_count); }

}  // namespace tprimat
