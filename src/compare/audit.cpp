#include "compare/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "result/summary.h"

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

bool means_the_same(const Metric& metric, const std::vector<Finding>& findings) {
  const auto found = [&](std::string_view code) { return has_code(findings, code); };
  if (metric.key == "mfu") return !found("flop_formula") && !found("peak") && !found("peak_value");
  if (metric.key == "tflops_per_gpu") return !found("flop_formula");
  if (metric.key.ends_with("_step_time")) return !found("batch") && !found("sequence_length");
  return metric.format != MetricFormat::gigabytes || !found("memory_meaning");
}

// Then it cancels out of a ratio of MFU.
bool has_one_peak(const Contender& reference, const Contender& subject) {
  const auto& expected = reference.first().derived.peak;
  const auto has_it = [&](const LoadedRun& run) {
    const auto& peak = run.result.derived.peak;
    return peak && peak->flops_per_second == expected->flops_per_second;
  };
  const auto have_it = [&](const Contender& side) { return std::all_of(side.runs.begin(), side.runs.end(), has_it); };
  return expected && have_it(reference) && have_it(subject);
}

bool is_doubted(const Metric& metric, const Contender& side, bool one_peak) {
  if (metric.key == "mfu")
    return has_code(side.findings, "unheard_of_mfu") || (!one_peak && has_code(side.findings, "other_peak"));
  return metric.format == MetricFormat::gigabytes && has_code(side.findings, "impossible_memory");
}

// A step's time says something of speed only where both sides do as much in a step.
bool has_unequal_steps(const Metric& metric, const Contender& reference, const Contender& subject) {
  const auto a = tokens_per_step(reference.first()), b = tokens_per_step(subject.first());
  return metric.key.ends_with("_step_time") && (!a || a != b);
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

std::optional<std::string> why_not_compared(const Metric& metric, const std::vector<Finding>& findings,
                                            const Contender& reference, const Contender& subject) {
  if (!means_the_same(metric, findings)) return "the figure means something else on each side: see the audit";
  for (const Contender* side : {&reference, &subject})
    if (is_doubted(metric, *side, has_one_peak(reference, subject)))
      return fmt::format("the figure of {} is in doubt: see the audit", side->label);
  if (has_unequal_steps(metric, reference, subject))
    return "a step is not shown to be the same work: its tokens differ, or are not known";
  return std::nullopt;
}

}  // namespace tprimat
