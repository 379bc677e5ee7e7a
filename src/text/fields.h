#pragma once

#include <string_view>
#include <tuple>

namespace tprimat {

// A struct declares its fields once, and parsing, printing, help and schema visit that list:
//
//   struct OptimizerSpec {
//     double learning_rate = 3e-4;
//     static constexpr auto fields() {
//       return std::tuple{field("learning_rate", &OptimizerSpec::learning_rate, "peak learning rate")};
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

template <class S>
concept Described = requires {
  S::fields();
};

template <Described S, class Visitor>
constexpr void for_each_field(Visitor&& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, S::fields());
}

}  // namespace tprimat
