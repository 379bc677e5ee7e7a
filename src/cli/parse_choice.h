#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "text/enum_names.h"
#include "text/format.h"

namespace tprimat {

// One of an enum's names, as an option was given it. Throws Error with the choices and the nearest.
template <NamedEnum E>
E parse_choice(const std::string& text, const std::string& option) {
  if (const auto value = parse_enum<E>(text)) return *value;
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<E>::values) names.emplace_back(name);
  const std::string near = nearest_word(text.substr(0, 64), names);
  throw Error(Problem{fmt::format("'{}' is none of {}", text, enum_choices<E>()), option,
                      near.empty() ? "" : fmt::format("did you mean '{}'?", near)});
}

}  // namespace tprimat
