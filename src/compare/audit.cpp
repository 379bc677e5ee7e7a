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

bool means_the_same(const Metric& metric, const std::vector<Finding>& findings) {
  const auto found = [&](std::string_view code) {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.code == code; });
  };
  if (metric.key == "mfu") return !found("flop_formula") && !found("peak");
  if (metric.key == "tflops_per_gpu") return !found("flop_formula");
  if (metric.key.ends_with("_step_time")) return !found("batch") && !found("sequence_length");
  return metric.format != MetricFormat::gigabytes || !found("memory_meaning");
}

}  // namespace tprimat
