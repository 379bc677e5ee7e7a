#pragma once

#include <string_view>

namespace tprimat {

// A struct declares its fields once, and parsing, printing, help and schema visit that list:
//
//   struct OptimizerSpec {
//     double learning_rate = 3e-4;
//     static constexpr auto fields() {
//       return field_list(field("learning_rate", &OptimizerSpec::learning_rate, "peak learning rate"));
//     }
//   };
//
// A std::optional member may be absent; every other member is always written.
template <class Struct, class Value>
struct Field {
  std::string_view key;
  Value Struct::*member;
  std::string_view doc;  // one sentence, with the unit
};

template <class Struct, class Value>
constexpr Field<Struct, Value> field(std::string_view key, Value Struct::*member, std::string_view doc) {
  return {key, member, doc};
}

// What fields() returns: a function that hands each field to a visitor. (A std::tuple of thirty fields costs a compiler
// as much as the rest of a small source, in every source that includes the struct.)
template <class... Fields>
constexpr auto field_list(Fields... fields) {
  return [=](auto&& visit) { (visit(fields), ...); };
}

// The fields of a base, then further ones.
template <class Base, class... Fields>
constexpr auto extend_fields(Fields... fields) {
  return [=](auto&& visit) {
    Base::fields()(visit);
    (visit(fields), ...);
  };
}

template <class S>
concept Described = requires { S::fields(); };

template <Described S, class Visitor>
constexpr void for_each_field(Visitor&& visit) {
  S::fields()(visit);
}

}  // namespace tprimat
