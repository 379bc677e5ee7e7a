#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/enum_names.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat {

// "did you mean 'llama'?", or "" where nothing is near.
inline std::string suggest_word(const std::string& text, const std::vector<std::string>& words) {
  const std::string near = nearest_word(text.substr(0, 64), words);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

// The same, or `otherwise` where no word is near.
inline std::string suggest_word_or(const std::string& text, const std::vector<std::string>& words,
                                   const std::string& otherwise) {
  const std::string suggestion = suggest_word(text, words);
  return suggestion.empty() ? otherwise : suggestion;
}

template <NamedEnum E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<E>::values) names.emplace_back(name);
  return names;
}

// An enum's value by a word that a person wrote, in capitals or not: "NVIDIA", "rocm", "BF16". Every platform and
// framework that options, keys and variables name goes through here.
template <NamedEnum E>
std::optional<E> parse_word(std::string_view text) {
  if (const auto exact = parse_enum<E>(text)) return exact;
  for (const auto& [value, name] : EnumNames<E>::values)
    if (lower_case(name) == lower_case(text)) return value;
  return std::nullopt;
}

// The printed names alone, without aliases; `first` are words that an option knows besides.
template <NamedEnum E>
std::vector<std::string> choices_of(std::vector<std::string> first = {}) {
  for (const auto& [value, name] : EnumNames<E>::values)
    if (enum_name(value) == name) first.emplace_back(name);
  return first;
}

// Parses an option's value as one of an enum's names, in capitals or not. Throws Error with the choices and the
// nearest.
template <NamedEnum E>
E parse_choice(const std::string& text, const std::string& option) {
  if (const auto value = parse_word<E>(text)) return *value;
  throw Error(Problem{fmt::format("'{}' is not one of {}", printable(text), enum_choices<E>()), option,
                      suggest_word(text, names_of<E>())});
}

}  // namespace tprimat
