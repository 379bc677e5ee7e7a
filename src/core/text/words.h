#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Splitting and parsing text: ASCII only, independent of the locale.
namespace tprimat {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }

constexpr bool is_alphanumeric(char c) { return is_digit(c) || is_letter(c); }

// One or more digits, and nothing else.
constexpr bool is_all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = is_upper(c) ? static_cast<char>(c + ('a' - 'A')) : c;
  return lower;
}

// Without blanks at both ends.
constexpr std::string_view trim_blanks(std::string_view text) {
  constexpr std::string_view k_blanks = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(k_blanks), text.size());
  return text.substr(begin, text.find_last_not_of(k_blanks) + 1 - begin);
}

// The parts between separators, with empty ones.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The whole text as a number; nothing for any other text.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace tprimat
