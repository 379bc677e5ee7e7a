#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "text/enum_names.h"
#include "text/fields.h"
#include "text/json.h"

// Structs with a field list to and from JSON, and their JSON Schema. Include from .cpp files only.
namespace tprimat {

namespace json_detail {
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
}  // namespace json_detail

template <class T>
concept OptionalValue = json_detail::IsOptional<T>::value;
template <class T>
concept VectorValue = json_detail::IsVector<T>::value;
template <class T>
concept MapValue = json_detail::IsMap<T>::value;

// NaN and infinities become null: JSON has no other honest word for them.
template <class T>
Json to_json(const T& value) {
  if constexpr (Described<T>) {
    Json object = Json::object();
    for_each_field<T>([&](const auto& each) {
      const auto& member = value.*each.member;
      if constexpr (OptionalValue<std::decay_t<decltype(member)>>) {
        if (member) object[std::string(each.key)] = to_json(*member);
      } else {
        object[std::string(each.key)] = to_json(member);
      }
    });
    return object;
  } else if constexpr (NamedEnum<T>) {
    return std::string(enum_name(value));
  } else if constexpr (VectorValue<T>) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(to_json(item));
    return array;
  } else if constexpr (MapValue<T>) {
    Json object = Json::object();
    for (const auto& [key, item] : value) object[key] = to_json(item);
    return object;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  } else {
    return Json(value);
  }
}

// Reads `json` into T; unknown keys are ignored and missing ones keep their default, so that files of other versions
// load. Throws Error that names `where` and the key for a value of the wrong type.
template <class T>
T from_json(const Json& json, const std::string& where) {
  const auto wrong = [&](std::string_view wanted) {
    return Error(Problem{fmt::format("must be {}, got {}", wanted, print_json_line(json).substr(0, 60)), where, ""});
  };
  if constexpr (Described<T>) {
    if (!json.is_object()) throw wrong("an object");
    T value{};
    for_each_field<T>([&](const auto& each) {
      using Member = std::decay_t<decltype(value.*each.member)>;
      const auto found = json.find(std::string(each.key));
      if (found == json.end()) return;
      const std::string path = fmt::format("{}.{}", where, each.key);
      if constexpr (OptionalValue<Member>) {
        if (!found->is_null()) value.*each.member = from_json<typename Member::value_type>(*found, path);
      } else {
        value.*each.member = from_json<Member>(*found, path);
      }
    });
    return value;
  } else if constexpr (NamedEnum<T>) {
    if (!json.is_string()) throw wrong("one of " + enum_choices<T>());
    const auto parsed = parse_enum<T>(json.get_ref<const std::string&>());
    if (!parsed) throw wrong("one of " + enum_choices<T>());
    return *parsed;
  } else if constexpr (VectorValue<T>) {
    if (!json.is_array()) throw wrong("a list");
    T values;
    values.reserve(json.size());
    for (const Json& item : json)
      values.push_back(from_json<typename T::value_type>(item, fmt::format("{}[{}]", where, values.size())));
    return values;
  } else if constexpr (MapValue<T>) {
    if (!json.is_object()) throw wrong("an object");
    T values;
    for (const auto& [key, item] : json.items())
      values[key] = from_json<typename T::mapped_type>(item, fmt::format("{}.{}", where, key));
    return values;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) throw wrong("true or false");
    return json.get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (json.is_null()) return std::numeric_limits<T>::quiet_NaN();
    if (!json.is_number()) throw wrong("a number");
    return json.get<T>();
  } else if constexpr (std::is_integral_v<T>) {
    if (json.is_number_float() && json.get<double>() == std::floor(json.get<double>()) &&
        std::fabs(json.get<double>()) < 9e15)
      return static_cast<T>(json.get<double>());
    if (!json.is_number_integer()) throw wrong("a whole number");
    return json.get<T>();
  } else if constexpr (std::is_same_v<T, Json>) {
    return json;
  } else {
    if (!json.is_string()) throw wrong("a text");
    return json.get<T>();
  }
}

// Paths ("data.split") of what `json` holds and T has no field for, in the order of the file.
template <class T>
void find_unknown_keys(const Json& json, const std::string& path, std::vector<std::string>& unknown) {
  if constexpr (OptionalValue<T>) {
    find_unknown_keys<typename T::value_type>(json, path, unknown);
  } else if constexpr (VectorValue<T>) {
    if (!json.is_array()) return;
    for (size_t i = 0; i < json.size(); ++i)
      find_unknown_keys<typename T::value_type>(json[i], fmt::format("{}[{}]", path, i), unknown);
  } else if constexpr (Described<T>) {
    if (!json.is_object()) return;
    for (const auto& [key, item] : json.items()) {
      const std::string item_path = path.empty() ? key : path + "." + key;
      bool is_known = false;
      for_each_field<T>([&](const auto& each) {
        if (each.key != key) return;
        is_known = true;
        find_unknown_keys<std::decay_t<decltype(std::declval<T>().*each.member)>>(item, item_path, unknown);
      });
      if (!is_known) unknown.push_back(item_path);
    }
  }
}

// JSON Schema (draft 2020-12) of T, with each field's doc as its description. Non-optional fields are required.
template <class T>
Json json_schema() {
  if constexpr (Described<T>) {
    Json properties = Json::object(), required = Json::array();
    for_each_field<T>([&](const auto& each) {
      using Member = std::decay_t<decltype(std::declval<T>().*each.member)>;
      Json schema;
      if constexpr (OptionalValue<Member>) {
        schema = json_schema<typename Member::value_type>();
      } else {
        schema = json_schema<Member>();
        required.push_back(std::string(each.key));
      }
      schema["description"] = std::string(each.doc);
      properties[std::string(each.key)] = schema;
    });
    return Json{{"type", "object"}, {"properties", properties}, {"required", required}};
  } else if constexpr (NamedEnum<T>) {
    Json names = Json::array();
    for (const auto& [value, name] : EnumNames<T>::values)
      if (enum_name(value) == name) names.push_back(std::string(name));
    return Json{{"enum", names}};
  } else if constexpr (VectorValue<T>) {
    return Json{{"type", "array"}, {"items", json_schema<typename T::value_type>()}};
  } else if constexpr (MapValue<T>) {
    return Json{{"type", "object"}, {"additionalProperties", json_schema<typename T::mapped_type>()}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return Json{{"type", "boolean"}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return Json{{"type", Json::array({"number", "null"})}};
  } else if constexpr (std::is_integral_v<T>) {
    return Json{{"type", "integer"}};
  } else if constexpr (std::is_same_v<T, Json>) {
    return Json::object();
  } else {
    return Json{{"type", "string"}};
  }
}

}  // namespace tprimat
