#include "report/comparison_document.h"

#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "compare/gates.h"
#include "report/figures.h"
#include "report/report.h"
#include "result/gpu_cores.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace document {
namespace {

std::vector<Finding> describe_findings(const std::vector<results::Finding>& findings) {
  std::vector<Finding> list;
  for (const results::Finding& each : findings) {
    list.push_back({each.code, each.severity, each.sentence, each.why, each.remedy, {}});
    for (const results::Evidence& one : each.evidence)
      list.back().evidence.push_back({one.what, one.reference, one.subject});
  }
  return list;
}

OrderedMap<Figure> describe_figures(const results::Contender& contender) {
  OrderedMap<Figure> figures;
  for (const Metric& metric : metrics())
    if (const auto estimate = read_figure(contender, metric))
      figures.emplace_back(metric.key, Figure{*estimate, std::string(metric.unit)});
  return figures;
}

Nullable<DeviceCores> describe_cores(const RunResult& run) {
  const auto cores = find_gpu_cores(run);
  if (!cores) return {};
  return DeviceCores{cores->units, cores->unit_name, cores->lanes, cores->lane_name, cores->source};
}

Contender describe_contender(const results::Contender& contender) {
  Contender described{.letter = contender.letter,
                      .label = contender.label,
                      .files = {},
                      .facts = {},
                      .gpu_cores = describe_cores(contender.first()),
                      .figures = describe_figures(contender),
                      .findings = describe_findings(contender.findings),
                      .warnings = {},
                      .published = find_standing(contender)};
  for (const auto list : {list_facts, list_target_facts, list_expert_facts})
    for (const RunFact& fact : list(contender)) described.facts.emplace_back(fact.name, fact.text());
  for (const LoadedRun& run : contender.runs) {
    described.files.push_back(run.path);
    described.warnings.insert(described.warnings.end(), run.result.warnings.begin(), run.result.warnings.end());
  }
  return described;
}

// Times to train stay comparable where rates are not: their rules alone decide.
std::optional<TimeRatio> describe_times(const results::Pair& pair) {
  if (!pair.time_to_train) return {};
  const TimeComparison& times = *pair.time_to_train;
  return TimeRatio{times.ratio.has_value(), times.ratio, times.sentence};
}

std::optional<Causes> describe_causes(const results::Pair& pair) {
  if (!pair.causes) return {};
  Causes causes{pair.causes->sentence, pair.causes->gap_seconds, pair.causes->resolved, {}};
  for (const PairCause& each : pair.causes->terms)
    causes.terms.push_back({each.cause, each.title, each.seconds, each.sentence});
  return causes;
}

// The raw ratio of the rates is always there.
Pair describe_pair(const Comparison& comparison, const results::ModelGroup& group, const results::Pair& pair) {
  Pair described{.subject = group.contenders[pair.subject].letter,
                 .reference = group.contenders[pair.reference].letter,
                 .comparable = pair.comparable,
                 .fairness = pair.fairness,
                 .rate_ratio = pair.ratio,
                 .verdict = {},
                 .ratio = {},
                 .statistics = {},
                 .explanation = {},
                 .ratios = {},
                 .headline = headline(comparison, group, pair),
                 .findings = describe_findings(pair.findings),
                 .versions = pair.versions ? std::optional(true) : std::nullopt,
                 .time_to_train = describe_times(pair),
                 .causes = describe_causes(pair)};
  if (!shows_verdict(comparison, pair)) return described;
  described.verdict = pair.verdict;
  described.ratio = pair.ratio;
  described.statistics = pair.statistics;
  described.explanation = pair.explanation;
  described.ratios = pair.ratios;
  return described;
}

Gate describe_gate_result(const GateResult& result) {
  const results::Gate& gate = result.gate;
  return {gate.text,
          std::string(gate.metric->key),
          gate.compare,
          gate.threshold,
          gate.relative,
          gate.relative ? "" : std::string(gate.metric->unit),
          result.model,
          result.baseline,
          result.subject,
          result.before,
          result.after,
          result.change,
          result.outcome,
          result.reason,
          describe_gate(result)};
}

}  // namespace

std::vector<Gate> describe_gates(const std::vector<GateResult>& results) {
  std::vector<Gate> gates;
  for (const GateResult& result : results) gates.push_back(describe_gate_result(result));
  return gates;
}

std::vector<SkippedFile> describe_skipped(const std::vector<results::SkippedFile>& files) {
  std::vector<SkippedFile> list;
  for (const results::SkippedFile& file : files) list.push_back({file.path, file.reason});
  return list;
}

ComparisonReport describe_comparison(const Comparison& comparison) {
  ComparisonReport report{.smallest_effect = comparison.smallest_effect,
                          .forced = comparison.force,
                          .exit_status = static_cast<int64_t>(comparison_status(comparison)),
                          .groups = {},
                          .skipped = describe_skipped(comparison.skipped),
                          .gates = {}};
  for (const results::ModelGroup& group : comparison.groups) {
    report.groups.push_back({group.model, {}, {}});
    for (const results::Contender& contender : group.contenders)
      report.groups.back().contenders.push_back(describe_contender(contender));
    for (const results::Pair& pair : group.pairs)
      report.groups.back().pairs.push_back(describe_pair(comparison, group, pair));
  }
  if (!comparison.gates.empty()) report.gates = describe_gates(comparison.gates);
  return report;
}

}  // namespace document

Json comparison_to_json(const Comparison& comparison) { return to_json(document::describe_comparison(comparison)); }

}  // namespace tprimat::results
