#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <vector>

namespace tprimat::suite {

// Arguments of a command line in the form "--flag value".
class ArgumentList {
 public:
  void flag(const char* name) { words_.emplace_back(name); }
  void flag_if(bool stated, const char* name) {
    if (stated) flag(name);
  }
  template <class Value>
  void add(const char* name, const Value& value) {
    words_.emplace_back(name);
    if constexpr (std::is_floating_point_v<Value>)
      words_.push_back(fmt::format("{:.15g}", value));  // 3e-05, and not 2.9999999999999997e-05
    else
      words_.push_back(fmt::format("{}", value));
  }
  std::vector<std::string> take() && { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

}  // namespace tprimat::suite
