#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

namespace tprimat::suite {

using Arguments = std::vector<std::string>;

inline void append(Arguments& arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

// Arguments of a command line in the form "--flag value".
class ArgumentList {
 public:
  void flag(const char* name) { arguments_.emplace_back(name); }
  void flag_if(bool stated, const char* name) {
    if (stated) flag(name);
  }
  template <class Value>
  void add(const char* name, const Value& value) {
    arguments_.emplace_back(name);
    if constexpr (std::is_floating_point_v<Value>)
      arguments_.push_back(fmt::format("{:.15g}", value));  // 3e-05, and not 2.9999999999999997e-05
    else
      arguments_.push_back(fmt::format("{}", value));
  }
  Arguments take() && { return std::move(arguments_); }

 private:
  Arguments arguments_;
};

}  // namespace tprimat::suite
