#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace tprimat {

// Specialise with `static constexpr std::pair<E, std::string_view> values[]`. The first name of a value is the one we
// print; further names of the same value are accepted as aliases.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  EnumNames<E>::values;
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
