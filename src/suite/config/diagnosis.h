#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tprimat::suite {

// A warning that several places may cause. Those with the same sentence become one, which lists their details.
struct Remark {
  std::string what, detail, where, hint;
};

// The problems of a configuration. Keys that are known to be wrong are remembered, so that rules that depend on them
// stay silent: one mistake, one message.
class Diagnosis {
 public:
  void add_error(Problem problem) { errors_.push_back(std::move(problem)); }
  void add_error(Problem problem, const std::string& wrong_path);  // the path counts as wrong from here on
  void add_warning(Problem problem) { warnings_.push_back(std::move(problem)); }
  void add_remark(const Remark& remark);

  // False if one of the paths, a parent or a child of it is known to be wrong.
  bool is_sound(std::string_view path) const;
  bool are_sound(std::initializer_list<std::string_view> paths) const;

  const std::vector<Problem>& errors() const { return errors_; }
  const std::vector<Problem>& warnings() const { return warnings_; }

 private:
  std::vector<Problem> errors_, warnings_;
  std::map<std::string, size_t> remarks_;  // by sentence: index in warnings_
  std::vector<std::string> wrong_paths_;
};

}  // namespace tprimat::suite
