#include "compare/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tprimat {
namespace {

template <class Rule>
Finding make_finding(const Rule& rule, const Proof& proof) {
  return {std::string(rule.code),
          rule.severity,
          std::string(rule.sentence) + (proof.figures.empty() ? "" : ": " + proof.figures),
          std::string(rule.remedy),
          std::string(rule.why),
          proof.evidence};
}

bool has_code(const std::vector<Finding>& findings, std::string_view code) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.code == code; });
}

void worst_first(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace

std::vector<Finding> audit_contender(const Contender& contender) {
  std::vector<Finding> findings;
  for (const RunRule& rule : run_rules())
    if (const auto proof = rule.check(contender)) findings.push_back(make_finding(rule, *proof));
  worst_first(findings);
  return findings;
}

std::vector<Finding> audit_pair(const Contender& reference, const Contender& subject, const AuditOptions& options) {
  std::vector<Finding> findings;
  for (const PairRule& rule : pair_rules())
    if (const auto proof = rule.check({reference, subject, options})) findings.push_back(make_finding(rule, *proof));
  worst_first(findings);
  return findings;
}

Proof::Proof(std::vector<Evidence> shown) : evidence(std::move(shown)) {
  for (const Evidence& each : evidence)
    figures += fmt::format("{}{}{}{} against {}", figures.empty() ? "" : ", ", each.what, each.what.empty() ? "" : " ",
                           each.reference, each.subject);
}

Fairness judge_fairness(const std::vector<Finding>& of_pair, const Contender& reference, const Contender& subject) {
  Severity worst = Severity::note;
  for (const auto* findings : {&of_pair, &reference.findings, &subject.findings})
    for (const Finding& each : *findings) worst = std::max(worst, each.severity);
  if (worst == Severity::error) return Fairness::not_comparable;
  return worst == Severity::warning ? Fairness::with_notes : Fairness::comparable;
}

bool has_error(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& each) { return each.severity == Severity::error; });
}

bool means_the_same(const Metric& metric, const std::vector<Finding>& findings) {
  const auto found = [&](std::string_view code) { return has_code(findings, code); };
  if (metric.key == "mfu") return !found("flop_formula") && !found("peak") && !found("peak_value");
  if (metric.key == "tflops_per_gpu") return !found("flop_formula");
  if (metric.key.ends_with("_step_time")) return !found("batch") && !found("sequence_length");
  return metric.format != MetricFormat::gigabytes || !found("memory_meaning");
}

bool is_doubted(const Metric& metric, const std::vector<Finding>& findings) {
  if (metric.key == "mfu") return has_code(findings, "other_peak");
  return metric.format == MetricFormat::gigabytes && has_code(findings, "impossible_memory");
}

}  // namespace tprimat
