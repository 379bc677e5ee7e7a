#include "compare/compare_runs.h"
#include "compare/contender.h"
#include "compare/gates.h"
#include "report/figures.h"
#include "report/report.h"
#include "result/gpu_cores.h"
#include "text/csv.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

Json findings_to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& each : findings) {
    Json evidence = Json::array();
    for (const Evidence& one : each.evidence)
      evidence.push_back({{"what", one.what}, {"reference", one.reference}, {"subject", one.subject}});
    list.push_back({{"code", each.code},
                    {"severity", enum_name(each.severity)},
                    {"sentence", each.sentence},
                    {"why", each.why},
                    {"remedy", each.remedy},
                    {"evidence", evidence}});
  }
  return list;
}

Json figures_to_json(const Contender& contender) {
  Json figures = Json::object();
  for (const Metric& metric : metrics()) {
    const auto estimate = read_figure(contender, metric);
    if (!estimate) continue;
    Json figure = to_json(*estimate);
    figure["unit"] = std::string(metric.unit);
    figures[std::string(metric.key)] = figure;
  }
  return figures;
}

// Null where unknown. `unit` says which unit of its vendor compute_units count, `core_kind` what cores are.
Json gpu_cores_to_json(const RunResult& run) {
  const auto cores = find_gpu_cores(run);
  if (!cores) return nullptr;
  const auto count = [](const std::optional<int64_t>& known) { return known ? Json(*known) : Json(nullptr); };
  return {{"compute_units", count(cores->units)},
          {"unit", cores->unit_name},
          {"cores", count(cores->lanes)},
          {"core_kind", cores->lane_name},
          {"source", cores->source}};
}

Json contender_to_json(const Contender& contender) {
  Json facts = Json::object(), files = Json::array(), warnings = Json::array();
  for (const RunFact& fact : list_facts(contender)) facts[fact.name] = fact.text();
  for (const auto list : {list_target_facts, list_expert_facts})
    for (const RunFact& fact : list(contender)) facts[fact.name] = fact.text();
  for (const LoadedRun& run : contender.runs) {
    files.push_back(run.path);
    for (const std::string& warning : run.result.warnings) warnings.push_back(warning);
  }
  Json json{{"letter", contender.letter},
            {"label", contender.label},
            {"files", files},
            {"facts", facts},
            {"gpu_cores", gpu_cores_to_json(contender.first())},
            {"figures", figures_to_json(contender)},
            {"findings", findings_to_json(contender.findings)},
            {"warnings", warnings}};
  if (const auto standing = find_standing(contender)) json["published"] = to_json(*standing);
  return json;
}

// Times to train stay comparable where rates are not: their rules alone decide.
void add_times(Json& json, const Pair& pair) {
  if (!pair.time_to_train) return;
  const TimeComparison& times = *pair.time_to_train;
  json["time_to_train"] = {{"comparable", times.ratio.has_value()},
                           {"ratio", times.ratio ? to_json(*times.ratio) : Json(nullptr)},
                           {"sentence", times.sentence}};
}

// Verdict and ratios are null if withheld, so that JSON does not show a winner either. The raw ratio of the rates is
// always there.
Json pair_to_json(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  const bool shown = shows_verdict(comparison, pair);
  Json json{{"subject", group.contenders[pair.subject].letter},
            {"reference", group.contenders[pair.reference].letter},
            {"comparable", pair.comparable},
            {"fairness", enum_name(pair.fairness)},
            {"rate_ratio", pair.ratio ? to_json(*pair.ratio) : Json(nullptr)},
            {"verdict", shown ? Json(enum_name(pair.verdict)) : Json(nullptr)},
            {"ratio", shown && pair.ratio ? to_json(*pair.ratio) : Json(nullptr)},
            {"statistics", shown && pair.statistics ? to_json(*pair.statistics) : Json(nullptr)},
            {"explanation", shown ? Json(pair.explanation) : Json(nullptr)},
            {"ratios", shown ? to_json(pair.ratios) : Json(nullptr)},
            {"headline", headline(comparison, group, pair)},
            {"findings", findings_to_json(pair.findings)}};
  if (pair.versions) json["versions"] = true;
  add_times(json, pair);
  return json;
}

Json optional_estimate(const std::optional<Estimate>& estimate) {
  return estimate ? to_json(*estimate) : Json(nullptr);
}

std::vector<std::string> header_cells(const Contender& any) {
  std::vector<std::string> cells{"model", "letter", "label", "files"};
  for (const RunFact& fact : list_facts(any)) cells.emplace_back(fact.name);
  for (const Metric& metric : metrics())
    for (const char* suffix : {"", "_ci95_low", "_ci95_high"}) cells.push_back(std::string(metric.key) + suffix);
  return cells;
}

std::vector<std::string> contender_cells(const std::string& model, const Contender& contender) {
  std::string files;
  for (const LoadedRun& run : contender.runs) files += (files.empty() ? "" : ";") + run.path;
  std::vector<std::string> cells{model, contender.letter, contender.label, files};
  for (const RunFact& fact : list_facts(contender)) cells.push_back(fact.text());
  for (std::string& cell : cells) cell = csv_text(cell);
  for (const Metric& metric : metrics()) {
    const auto estimate = read_figure(contender, metric);
    cells.push_back(estimate ? csv_number(estimate->value) : "");
    cells.push_back(estimate ? csv_number(estimate->low) : "");
    cells.push_back(estimate ? csv_number(estimate->high) : "");
  }
  return cells;
}

}  // namespace

Json gate_to_json(const GateResult& result) {
  const Gate& gate = result.gate;
  return {{"gate", gate.text},
          {"metric", gate.metric->key},
          {"operator", enum_name(gate.compare)},
          {"threshold", gate.threshold},
          {"relative", gate.relative},
          {"unit", gate.relative ? std::string_view() : gate.metric->unit},
          {"model", result.model},
          {"baseline", result.baseline},
          {"subject", result.subject},
          {"before", optional_estimate(result.before)},
          {"after", optional_estimate(result.after)},
          {"change", optional_estimate(result.change)},
          {"outcome", enum_name(result.outcome)},
          {"reason", result.reason},
          {"sentence", describe_gate(result)}};
}

Json skipped_to_json(const std::vector<SkippedFile>& files) {
  Json list = Json::array();
  for (const SkippedFile& file : files) list.push_back({{"path", file.path}, {"reason", file.reason}});
  return list;
}

Json comparison_to_json(const Comparison& comparison) {
  Json groups = Json::array();
  for (const ModelGroup& group : comparison.groups) {
    Json contenders = Json::array(), pairs = Json::array();
    for (const Contender& contender : group.contenders) contenders.push_back(contender_to_json(contender));
    for (const Pair& pair : group.pairs) pairs.push_back(pair_to_json(comparison, group, pair));
    groups.push_back({{"model", group.model}, {"contenders", contenders}, {"pairs", pairs}});
  }
  Json all = {{"comparison_version", 1},    {"smallest_effect", comparison.smallest_effect},
              {"forced", comparison.force}, {"exit_status", static_cast<int>(comparison_status(comparison))},
              {"groups", groups},           {"skipped", skipped_to_json(comparison.skipped)}};
  for (const GateResult& result : comparison.gates) all["gates"].push_back(gate_to_json(result));
  return all;
}

std::string render_csv(const Comparison& comparison) {
  std::string out;
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) {
      if (out.empty()) out = join(header_cells(contender), ",") + '\n';
      out += join(contender_cells(group.model, contender), ",") + '\n';
    }
  return out;
}

}  // namespace tprimat::results
