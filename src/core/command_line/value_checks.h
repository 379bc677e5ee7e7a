#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

#include "base/printable.h"
#include "command_line/options.h"
#include "text/choice.h"
#include "text/words.h"

namespace tprimat {

// A larger count (of steps, nodes, checkpoints) is a typo.
inline constexpr int64_t k_max_count = int64_t{1} << 30;

// Unlike CLI::Range, refuses NaN and text, and prints bounds as people write them. Integer bounds require an integer.
template <typename Number>
Check number_from(Number low, Number high) {
  return [low, high](std::string& text) -> std::string {
    const auto value = parse_number<Number>(text);
    if (value && *value >= low && *value <= high) return "";
    return fmt::format("'{}' is not a {}number from {} to {}", printable(text.substr(0, 64)),
                       std::is_integral_v<Number> ? "whole " : "", low, high);
  };
}

// Rewrites 90, 90s, 30m, 30min and 2h as seconds, from 0 to 1e9 (31 years).
Check time_in_seconds();

inline Check positive_count() { return number_from<int64_t>(1, k_max_count); }

// One of some plain words; for Option::check.
Check one_of(std::vector<std::string> words);

// Rewrites a name of an enum, an alias or capitals as the name that we print.
template <NamedEnum E>
Check name_of() {
  return [](std::string& text) -> std::string {
    const auto value = parse_word<E>(text);
    if (!value) return one_of(choices_of<E>())(text);
    text = enum_name(*value);
    return "";
  };
}

// Refuses to write over what is read: throws Error where `output`, the value of `option`, is one of the inputs.
void require_no_input(const std::string& output, const std::vector<std::string>& inputs, const char* option);

}  // namespace tprimat
