#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Types of members that a document has beside the usual ones (text/json_fields.h).
namespace tprimat {

// Always written: as null where it holds nothing.
template <class T>
struct Nullable : std::optional<T> {
  using std::optional<T>::optional;
  Nullable() = default;
  Nullable(const std::optional<T>& value) : std::optional<T>(value) {}
};

// An object whose keys keep their order.
template <class T>
struct OrderedMap : std::vector<std::pair<std::string, T>> {
  using key_type = std::string;  // NOLINT(readability-identifier-naming): the names of the standard library's maps
  using mapped_type = T;         // NOLINT(readability-identifier-naming)
  T& add(std::string_view key) { return this->emplace_back(key, T{}).second; }
};

namespace json_detail {

template <class T>
struct IsNullable : std::false_type {};
template <class T>
struct IsNullable<Nullable<T>> : std::true_type {};

}  // namespace json_detail

template <class T>
concept NullableValue = json_detail::IsNullable<T>::value;

}  // namespace tprimat
