#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tprimat::suite {

// What reading a configuration brings to light. A key that is already known to be wrong is remembered, so that the
// rules that depend on it stay silent: one mistake, one message.
class Diagnosis {
 public:
  void add_error(Problem problem) { errors_.push_back(std::move(problem)); }
  void add_error(Problem problem, const std::string& wrong_path);  // the path is not to be relied on from here on
  void add_warning(Problem problem) { warnings_.push_back(std::move(problem)); }

  // False when one of the paths, what is above it or what is below it is known to be wrong.
  bool is_sound(std::string_view path) const;
  bool are_sound(std::initializer_list<std::string_view> paths) const;

  const std::vector<Problem>& errors() const { return errors_; }
  const std::vector<Problem>& warnings() const { return warnings_; }

 private:
  std::vector<Problem> errors_, warnings_;
  std::vector<std::string> wrong_paths_;
};

}  // namespace tprimat::suite
