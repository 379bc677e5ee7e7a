#include "compare/audit.h"

#include <algorithm>

namespace tprimat {
namespace {

template <class Rule>
Finding make_finding(const Rule& rule, const std::string& figures) {
  return {std::string(rule.code), rule.severity, std::string(rule.sentence) + (figures.empty() ? "" : ": " + figures),
          std::string(rule.remedy)};
}

void worst_first(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace

std::vector<Finding> audit_contender(const Contender& contender) {
  std::vector<Finding> findings;
  for (const RunRule& rule : run_rules())
    if (const auto figures = rule.check(contender)) findings.push_back(make_finding(rule, *figures));
  worst_first(findings);
  return findings;
}

std::vector<Finding> audit_pair(const Contender& reference, const Contender& subject) {
  std::vector<Finding> findings;
  for (const PairRule& rule : pair_rules())
    if (const auto figures = rule.check(reference.first(), subject.first()))
      findings.push_back(make_finding(rule, *figures));
  worst_first(findings);
  return findings;
}

bool has_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& each) { return each.severity == Severity::error; });
}

}  // namespace tprimat
