#pragma once

#include <optional>
#include <string_view>

#include "telemetry/fault_log.h"

namespace tprimat {

// How the functions of one vendor's library are called: a status of zero is success everywhere, everything else is
// written down.
struct LibraryCaller {
  FaultLog& faults;
  std::string_view (*describe)(int status);

  // What `function(arguments..., &value)` wrote; nothing where the library lacks it or it failed.
  template <class Value, class Function, class... Arguments>
  std::optional<Value> ask(std::string_view figure, Function function, Arguments... arguments) const {
    Value value{};
    if (function == nullptr) {
      faults.record(figure, "this version of the library cannot tell");
      return std::nullopt;
    }
    if (const int status = function(arguments..., &value); status != 0) {
      faults.record(figure, describe(status));
      return std::nullopt;
    }
    return value;
  }

  template <class Value, class Function, class... Arguments>
  std::optional<double> ask_scaled(std::string_view figure, double unit, Function function,
                                   Arguments... arguments) const {
    const auto value = ask<Value>(figure, function, arguments...);
    if (!value) return std::nullopt;
    return static_cast<double>(*value) * unit;
  }
};

}  // namespace tprimat
