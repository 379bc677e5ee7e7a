#include <fmt/format.h>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "report/ci_report.h"
#include "report/figures.h"

namespace tprimat::results {
namespace {

using State = Check::State;

Check check_result(const ModelGroup& group, const LoadedRun& run) {
  const RunResult& result = run.result;
  if (result.status == RunStatus::complete) return {group.model, "result", run.path, State::passed, "", ""};
  return {group.model,
          "result",
          run.path,
          State::error,
          "invalid",
          fmt::format("{}: {}", enum_name(result.status), result.status_reason.value_or("the file does not say why"))};
}

Check check_pair(const Comparison& comparison, const ModelGroup& group, const Pair& pair) {
  Check check{group.model, "pair", pair_name(group, pair), State::passed, "", headline(comparison, group, pair)};
  check.name +=
      fmt::format(": {} against {}", group.contenders[pair.subject].label, group.contenders[pair.reference].label);
  if (!pair.comparable)
    check.state = State::error, check.type = "not_comparable";
  else if (pair.verdict == Verdict::inconclusive)
    check.state = State::skipped, check.type = "inconclusive";
  return check;
}

Check check_gate(const GateResult& result) {
  Check check{result.model, "gate", fmt::format("{}: {} against {}", result.gate.text, result.subject, result.baseline),
              State::error, "",     describe_gate(result)};
  switch (result.outcome) {
    case GateOutcome::passed: check.state = State::passed; break;
    case GateOutcome::failed: check.state = State::failed, check.type = "regression"; break;
    case GateOutcome::inconclusive: check.type = "inconclusive"; break;
    case GateOutcome::not_comparable: check.type = "not_comparable"; break;
    case GateOutcome::invalid: check.type = "invalid"; break;
  }
  return check;
}

}  // namespace

std::vector<Check> list_checks(const Comparison& comparison) {
  std::vector<Check> checks;
  for (const ModelGroup& group : comparison.groups) {
    for (const Contender& contender : group.contenders)
      for (const LoadedRun& run : contender.runs) checks.push_back(check_result(group, run));
    for (const Pair& pair : group.pairs) checks.push_back(check_pair(comparison, group, pair));
  }
  for (const GateResult& result : comparison.gates) checks.push_back(check_gate(result));
  for (const SkippedFile& file : comparison.skipped)
    checks.push_back({"files", "file", file.path, State::skipped, "no_result", file.reason});
  return checks;
}

}  // namespace tprimat::results
