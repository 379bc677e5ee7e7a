#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tprimat {

namespace enum_detail {

// "constexpr std::string_view tprimat::... [with auto value = tprimat::Launcher::mpi; ...]" -> "mpi"; "" for a value
// that is not an enumerator, which compilers print as a cast: "(tprimat::Launcher)9".
template <auto value>
constexpr std::string_view enumerator() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("value = ") + 8);
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(text.rfind(':') + 1);
  return text.find(')') == std::string_view::npos ? text : "";
}

template <class E, size_t count = 0>
constexpr size_t count_enumerators() {
  if constexpr (enumerator<static_cast<E>(count)>().empty())
    return count;
  else
    return count_enumerators<E, count + 1>();
}

template <class E, size_t... values>
constexpr auto enumerators(std::index_sequence<values...>) {
  return std::array{std::pair(static_cast<E>(values), enumerator<static_cast<E>(values)>())...};
}

}  // namespace enum_detail

// The values of an enum are called as in its definition, where they count from 0. One whose values are printed
// otherwise or have aliases has a function `constexpr auto enum_table(E)` in its namespace, which returns an array of
// std::pair<E, std::string_view>: the first name of a value is the one we print, further names are accepted.
template <class E>
concept NamedEnum = std::is_enum_v<E>;

template <NamedEnum E>
constexpr auto enum_values() {
  if constexpr (requires(E value) { enum_table(value); }) {
    return enum_table(E{});
  } else {
    constexpr size_t count = enum_detail::count_enumerators<E>();
    static_assert(count > 0, "the enum needs an enum_table");
    return enum_detail::enumerators<E>(std::make_index_sequence<count>());
  }
}

template <NamedEnum E>
struct EnumNames {
  static constexpr auto values = enum_values<E>();
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

// If files of other versions may hold further names, a function `constexpr E unknown_word(E)` gives the value for
// these.
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
