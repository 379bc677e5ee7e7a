#pragma once

#include <optional>
#include <type_traits>

namespace tprimat {

// A member of a struct with a field list that is always written: as null where it holds nothing.
template <class T>
struct Nullable : std::optional<T> {
  using std::optional<T>::optional;
  Nullable() = default;
  Nullable(const std::optional<T>& value) : std::optional<T>(value) {}
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
