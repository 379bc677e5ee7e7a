#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "text/fields.h"

namespace tprimat::suite {

// Visits the fields that a raw struct and a spec have in common: visit(key, std::optional<V>& raw, V or
// std::optional<V>& spec).
template <class Raw, class Spec, class Visitor>
void for_each_pair(Raw& raw, Spec& spec, Visitor&& visit) {
  for_each_field<Raw>([&](const auto& written) {
    auto& stated = raw.*written.member;
    for_each_field<Spec>([&](const auto& resolved) {
      auto& value = spec.*resolved.member;
      using Stated = std::decay_t<decltype(stated)>;
      using Value = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Stated, std::optional<Value>> || std::is_same_v<Stated, Value>)
        if (written.key == resolved.key) visit(written.key, stated, value);
    });
  });
}

}  // namespace tprimat::suite
