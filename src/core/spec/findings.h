#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tprimat {

// Collects the problems of one value that is checked by many rules, all of them at once.
class Findings {
 public:
  explicit Findings(std::string where) : where_(std::move(where)) {}

  void require(bool sound, std::string what, std::string hint = "") {
    if (!sound) problems_.push_back({std::move(what), where_, std::move(hint)});
  }
  void add(const std::vector<Problem>& problems) {
    problems_.insert(problems_.end(), problems.begin(), problems.end());
  }
  bool empty() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::string where_;
  std::vector<Problem> problems_;
};

}  // namespace tprimat
