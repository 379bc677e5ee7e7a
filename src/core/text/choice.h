#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/enum_names.h"
#include "text/format.h"

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

// Parses an option's value as one of an enum's names. Throws Error with the choices and the nearest.
template <NamedEnum E>
E parse_choice(const std::string& text, const std::string& option) {
  if (const auto value = parse_enum<E>(text)) return *value;
  throw Error(Problem{fmt::format("'{}' is not one of {}", printable(text), enum_choices<E>()), option,
                      suggest_word(text, names_of<E>())});
}

}  // namespace tprimat
