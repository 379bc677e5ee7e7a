#pragma once

#include <simdjson.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "text/json_fields.h"

// Parses JSON into structs with a field list, several times faster than through a Json value (text/json_fields.h), for
// thousands of files. Reports only that something is wrong; parse_json and from_json then say what. Include from .cpp
// files only.
namespace tprimat {

using FastElement = simdjson::dom::element;

// Reads what from_json<T> would read; false where that would (or might) throw.
template <class T>
bool read_fast(const FastElement& json, T& value);

namespace fast_json_detail {

template <class T>
bool read_struct(const FastElement& json, T& value) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) return false;
  value = T{};
  bool good = true;
  for (const auto& [key, item] : object)
    for_each_field<T>([&, &key = key, &item = item](const auto& each) {
      if (each.key == key) good = good && read_fast(item, value.*each.member);
    });
  return good;
}

template <class T>
bool read_enum(const FastElement& json, T& value) {
  std::string_view name;
  if (json.get(name) != simdjson::SUCCESS) return false;
  const auto parsed = parse_stored_enum<T>(name);
  if (parsed) value = *parsed;
  return parsed.has_value();
}

template <class T>
bool read_vector(const FastElement& json, T& value) {
  simdjson::dom::array array;
  if (json.get(array) != simdjson::SUCCESS) return false;
  value.clear();
  value.reserve(array.size());
  for (const FastElement item : array) {
    typename T::value_type next{};
    if (!read_fast(item, next)) return false;
    value.push_back(std::move(next));
  }
  return true;
}

template <class T>
bool read_map(const FastElement& json, T& value) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) return false;
  value.clear();
  for (const auto& [key, item] : object) {
    const auto parsed = json_detail::parse_key<typename T::key_type>(key);
    if (!parsed || !read_fast(item, value[*parsed])) return false;
  }
  return true;
}

template <class T>
bool read_integer(const FastElement& json, T& value) {
  int64_t whole = 0;
  double number = 0;
  if (json.get(whole) == simdjson::SUCCESS) return value = static_cast<T>(whole), true;
  if (json.get(number) != simdjson::SUCCESS || number != std::floor(number) || std::fabs(number) >= 9e15) return false;
  return value = static_cast<T>(number), true;
}

template <class T>
bool read_scalar(const FastElement& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return json.get(value) == simdjson::SUCCESS;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (json.is_null()) value = std::numeric_limits<T>::quiet_NaN();
    return json.is_null() || json.get(value) == simdjson::SUCCESS;
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer(json, value);
  } else {
    std::string_view text;
    if (json.get(text) != simdjson::SUCCESS) return false;
    return value = text, true;
  }
}

}  // namespace fast_json_detail

template <class T>
bool read_fast(const FastElement& json, T& value) {
  if constexpr (OptionalValue<T>) {
    value.reset();
    return json.is_null() || read_fast(json, value.emplace());
  } else if constexpr (Described<T>) {
    return fast_json_detail::read_struct(json, value);
  } else if constexpr (NamedEnum<T>) {
    return fast_json_detail::read_enum(json, value);
  } else if constexpr (VectorValue<T>) {
    return fast_json_detail::read_vector(json, value);
  } else if constexpr (MapValue<T>) {
    return fast_json_detail::read_map(json, value);
  } else {
    return fast_json_detail::read_scalar(json, value);
  }
}

}  // namespace tprimat
