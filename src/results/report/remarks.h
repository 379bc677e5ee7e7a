#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compare/comparison.h"

namespace tprimat::results {

// The same finding about several participants stands once, with all their letters.
struct Remark {
  Finding finding;
  std::vector<std::string> whose;
  std::string list_whose(size_t max_named) const;  // "A, B and 3 more"
};

class Remarks {
 public:
  void add(const Finding& finding, const std::string& whose);
  std::vector<Remark> worst_first() &&;

 private:
  std::vector<Remark> all_;
  std::unordered_map<std::string, size_t> places_;
};

// Of all pairs, which `name_pair` names, and then of all participants; worst first.
std::vector<Remark> gather_findings(const ModelGroup& group, std::string (*name_pair)(const ModelGroup&, const Pair&));

}  // namespace tprimat::results
