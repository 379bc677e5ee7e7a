#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tprimat {

// An enum has names where its namespace has a function `constexpr auto enum_table(E)`, which returns an array of
// std::pair<E, std::string_view>. The first name of a value is the one we print; further names of the same value are
// accepted as aliases.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) { enum_table(value); };

template <NamedEnum E>
struct EnumNames {
  static constexpr auto values = enum_table(E{});
};

template <NamedEnum E>
constexpr std::string_view enum_name(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (candidate == value) return name;
  return "?";
}

template <NamedEnum E>
constexpr std::optional<E> parse_enum(std::string_view text) {
  for (const auto& [value, name] : EnumNames<E>::values)
    if (name == text) return value;
  return std::nullopt;
}

// An enum of which files of other versions may hold further words has a function `constexpr E unknown_word(E)`, too:
// the value as which such a word reads.
template <class E>
concept OpenEnum = NamedEnum<E> && requires(E value) { unknown_word(value); };

template <NamedEnum E>
constexpr std::optional<E> parse_stored_enum(std::string_view text) {
  const auto parsed = parse_enum<E>(text);
  if constexpr (OpenEnum<E>) return parsed.value_or(unknown_word(E{}));
  return parsed;
}

// "nvd, amd, cpu": the printed names, without aliases; for error messages.
template <NamedEnum E>
std::string enum_choices() {
  std::string text;
  for (const auto& [value, name] : EnumNames<E>::values) {
    if (enum_name(value) != name) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace tprimat
