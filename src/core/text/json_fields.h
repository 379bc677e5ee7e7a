#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"
#include "text/json.h"
#include "text/json_members.h"

// Structs with a field list to and from JSON, and their JSON Schema. Include from .cpp files only. The code for a
// member depends on its type alone and is compiled once per type.
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
template <NamedEnum E, class T>
struct IsMap<std::map<E, T>> : std::true_type {};
template <class T>
struct IsMap<OrderedMap<T>> : std::true_type {};

// The location of a value; its text is built only for errors.
struct Place {
  const Place* outer = nullptr;
  std::string_view name = {};  // key of an object; of the outermost: that of the document
  size_t index = 0;            // of a list, where there is no name
  std::string text() const;    // "result.json.runs[2].seed"
};

Json number_or_null(double value);

// Throws Error: "must be a list, got ...".
[[noreturn]] void reject(const Json& json, const Place& place, std::string_view wanted);
void require(bool is_right, const Json& json, const Place& place, std::string_view wanted);
void read_bool(const Json& json, const Place& place, bool& value);
void read_number(const Json& json, const Place& place, double& value);
int64_t read_whole(const Json& json, const Place& place);  // also one that is written as a fraction
void read_text(const Json& json, const Place& place, std::string& value);

Json object_schema(std::string_view function, Json&& properties, Json&& required);
Json nullable_schema(Json&& schema);
Json leaf_schema(const char* type);
void describe(Json& properties, std::string_view key, std::string_view doc, Json&& schema);

template <class Key>
std::string key_text(const Key& key) {
  if constexpr (NamedEnum<Key>)
    return std::string(enum_name(key));
  else
    return key;
}

template <class Key>
std::optional<Key> parse_key(std::string_view text) {
  if constexpr (NamedEnum<Key>)
    return parse_stored_enum<Key>(text);
  else
    return Key(text);
}

}  // namespace json_detail

template <class T>
concept OptionalValue = json_detail::IsOptional<T>::value;
template <class T>
concept VectorValue = json_detail::IsVector<T>::value;
template <class T>
concept MapValue = json_detail::IsMap<T>::value;

template <class T>
Json to_json(const T& value);
template <class T>
Json json_schema();

namespace json_detail {

template <class Member>
[[gnu::noinline]] void write_member(Json& object, std::string_view key, const Member& member) {
  if constexpr (OptionalValue<Member>) {
    if (member) object[key] = to_json(*member);
  } else {
    object[key] = to_json(member);
  }
}

template <class T>
void read_value(const Json& json, const Place& place, T& value);

template <class Member>
[[gnu::noinline]] void read_member(const Json& object, const Place& outer, std::string_view key, Member& member) {
  const Json* const found = object.find(key);
  if (found == nullptr) return;
  if constexpr (OptionalValue<Member>) {
    if (!found->is_null()) read_value(*found, {&outer, key}, member.emplace());
  } else {
    read_value(*found, {&outer, key}, member);
  }
}

template <class T>
void read_list(const Json& json, const Place& place, T& value) {
  require(json.is_array(), json, place, "a list");
  value.clear();
  value.reserve(json.size());
  for (const Json& item : json) {
    typename T::value_type next{};
    read_value(item, {&place, {}, value.size()}, next);
    value.push_back(std::move(next));
  }
}

template <class T>
void read_scalar(const Json& json, const Place& place, T& value) {
  if constexpr (std::is_same_v<T, bool>)
    read_bool(json, place, value);
  else if constexpr (std::is_same_v<T, double>)
    read_number(json, place, value);
  else if constexpr (std::is_integral_v<T>)
    value = static_cast<T>(read_whole(json, place));
  else if constexpr (std::is_same_v<T, Json>)
    value = json;
  else
    read_text(json, place, value);
}

template <class T>
void read_value(const Json& json, const Place& place, T& value) {
  if constexpr (Described<T>) {
    require(json.is_object(), json, place, "an object");
    value = T{};
    for_each_field<T>([&](const auto& each) { read_member(json, place, each.key, value.*each.member); });
  } else if constexpr (NamedEnum<T>) {
    const auto parsed = json.is_string() ? parse_stored_enum<T>(json.text()) : std::nullopt;
    if (!parsed) reject(json, place, "one of " + enum_choices<T>());
    value = *parsed;
  } else if constexpr (VectorValue<T>) {
    read_list(json, place, value);
  } else if constexpr (MapValue<T>) {
    require(json.is_object(), json, place, "an object");
    value.clear();
    for (const auto& [key, item] : json.items()) {
      const auto parsed = parse_key<typename T::key_type>(key);
      if (!parsed) reject(json, place, "an object with other keys");
      read_value(item, {&place, key}, value[*parsed]);
    }
  } else {
    read_scalar(json, place, value);
  }
}

template <class Member>
[[gnu::noinline]] void describe_member(Json& properties, Json& required, std::string_view key, std::string_view doc) {
  if constexpr (OptionalValue<Member>) {
    describe(properties, key, doc, json_schema<typename Member::value_type>());
  } else {
    required.push_back(key);
    describe(properties, key, doc, json_schema<Member>());
  }
}

template <class T>
Json struct_schema() {
  Json properties = Json::object(), required = Json::array();
  for_each_field<T>([&](const auto& each) {
    using Member = std::decay_t<decltype(std::declval<T>().*each.member)>;
    describe_member<Member>(properties, required, each.key, each.doc);
  });
  return object_schema(__PRETTY_FUNCTION__, std::move(properties), std::move(required));
}

template <class T>
Json enum_schema() {
  Json names = Json::array();
  for (const auto& [value, name] : EnumNames<T>::values)
    if (enum_name(value) == name) names.push_back(name);
  return Json{{"enum", names}};
}

}  // namespace json_detail

// NaN and infinities become null: JSON cannot represent them.
template <class T>
Json to_json(const T& value) {
  if constexpr (Described<T>) {
    Json object = Json::object();
    for_each_field<T>([&](const auto& each) { json_detail::write_member(object, each.key, value.*each.member); });
    return object;
  } else if constexpr (NamedEnum<T>) {
    return std::string(enum_name(value));
  } else if constexpr (VectorValue<T>) {
    Json::List items;
    items.reserve(value.size());
    for (const auto& item : value) items.push_back(to_json(item));
    return Json::array(std::move(items));
  } else if constexpr (MapValue<T>) {
    Json object = Json::object();
    for (const auto& [key, item] : value) object[json_detail::key_text(key)] = to_json(item);
    return object;
  } else if constexpr (NullableValue<T>) {
    return value ? to_json(*value) : Json(nullptr);
  } else if constexpr (std::is_floating_point_v<T>) {
    return json_detail::number_or_null(value);
  } else {
    return Json(value);
  }
}

// Reads `json` into T; unknown keys are ignored and missing ones keep their default, so that files of other versions
// load. Throws Error that names `where` and the key if a value has the wrong type.
template <class T>
T from_json(const Json& json, const std::string& where) {
  T value{};
  json_detail::read_value(json, {nullptr, where}, value);
  return value;
}

template <class T>
void find_unknown_keys(const Json& json, const std::string& path, std::vector<std::string>& unknown);

// False where T has no field of that name.
template <class T>
bool find_unknown_keys_of_member(const Json& json, const std::string& key, const std::string& path,
                                 std::vector<std::string>& unknown) {
  bool is_known = false;
  for_each_field<T>([&](const auto& each) {
    if (each.key != key) return;
    is_known = true;
    find_unknown_keys<std::decay_t<decltype(std::declval<T>().*each.member)>>(json, path, unknown);
  });
  return is_known;
}

// Paths ("data.split") in `json` that T has no field for, in the order of the file.
template <class T>
void find_unknown_keys(const Json& json, const std::string& path, std::vector<std::string>& unknown) {
  if constexpr (OptionalValue<T>) {
    find_unknown_keys<typename T::value_type>(json, path, unknown);
  } else if constexpr (VectorValue<T>) {
    if (!json.is_array()) return;
    for (size_t i = 0; i < json.size(); ++i)
      find_unknown_keys<typename T::value_type>(json[i], path + "[" + std::to_string(i) + "]", unknown);
  } else if constexpr (Described<T>) {
    if (!json.is_object()) return;
    for (const auto& [key, item] : json.items()) {
      const std::string item_path = path.empty() ? key : path + "." + key;
      if (!find_unknown_keys_of_member<T>(item, key, item_path, unknown)) unknown.push_back(item_path);
    }
  }
}

// JSON Schema (draft 2020-12) of T, with each field's doc as its description. Non-optional fields are required. The
// title of an object is the name of its struct; name_types() of json_schema.h makes definitions of these.
template <class T>
Json json_schema() {
  if constexpr (Described<T>) {
    return json_detail::struct_schema<T>();
  } else if constexpr (NamedEnum<T>) {
    return json_detail::enum_schema<T>();
  } else if constexpr (VectorValue<T>) {
    return Json{{"type", "array"}, {"items", json_schema<typename T::value_type>()}};
  } else if constexpr (MapValue<T>) {
    Json schema{{"type", "object"}, {"additionalProperties", json_schema<typename T::mapped_type>()}};
    if constexpr (NamedEnum<typename T::key_type>) schema["propertyNames"] = json_schema<typename T::key_type>();
    return schema;
  } else if constexpr (NullableValue<T>) {
    return json_detail::nullable_schema(json_schema<typename T::value_type>());
  } else if constexpr (std::is_same_v<T, bool>) {
    return json_detail::leaf_schema("boolean");
  } else if constexpr (std::is_floating_point_v<T>) {
    return Json{{"type", Json::array({"number", "null"})}};
  } else if constexpr (std::is_integral_v<T>) {
    return json_detail::leaf_schema("integer");
  } else if constexpr (std::is_same_v<T, Json>) {
    return Json::object();
  } else {
    return json_detail::leaf_schema("string");
  }
}

}  // namespace tprimat
