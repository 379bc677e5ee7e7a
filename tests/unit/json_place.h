#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include "text/json.h"

// Values of a document by their place, written as a JSON Pointer (RFC 6901): "/derived/peak", "/step_times/30".
namespace tprimat {

inline std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

inline std::string place_within(const std::string& place, const std::string& key) {
  return place + '/' + replace_all(replace_all(key, "~", "~0"), "/", "~1");
}

// A member that is not there is added.
inline Json& value_at(Json& json, std::string_view place) {
  if (place.empty()) return json;
  const size_t end = std::min(place.find('/', 1), place.size());
  const std::string word(place.substr(1, end - 1));
  Json& next = json.is_array() ? json[std::stoul(word)] : json[replace_all(replace_all(word, "~1", "/"), "~0", "~")];
  return value_at(next, place.substr(end));
}

inline void PrintTo(const Json& json, std::ostream* out) { *out << print_json_line(json); }  // for GoogleTest

}  // namespace tprimat
