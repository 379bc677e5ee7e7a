#include "report/ci_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "report/figures.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// One thing that was checked: a result, a pair, a gate.
struct Check {
  enum class State { passed, failed, error, skipped };
  std::string suite;  // the model; "files" for files that are not results
  std::string kind;   // result, pair, gate, file
  std::string name;   // path of the result, headline of the pair, gate and its two sides
  State state = State::passed;
  std::string type;      // a word for a program: invalid, not_comparable, regression, inconclusive, no_result
  std::string sentence;  // for people
};

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

// Every result (not complete: an error), every pair (not comparable: an error; inconclusive: skipped), every gate
// (failed: a failure; without an answer: an error), every file that is not a result (skipped).
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

// XML can hold all printable characters; pugixml escapes the rest.
void set(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name) = printable(value).c_str();
}

void add_case(pugi::xml_node suite, const Check& check) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "name", check.name);
  set(node, "classname", "tprimat." + check.suite + "." + check.kind);
  set(node, "time", "0");
  if (check.state == State::passed) return;
  pugi::xml_node verdict = node.append_child(check.state == State::failed  ? "failure"
                                             : check.state == State::error ? "error"
                                                                           : "skipped");
  set(verdict, "type", check.type);
  set(verdict, "message", check.sentence);
}

struct Suite {
  std::string name;
  std::vector<const Check*> checks;
  long count(State state) const {
    return std::ranges::count_if(checks, [&](const Check* each) { return each->state == state; });
  }
};

std::vector<Suite> gather_suites(const std::vector<Check>& checks) {
  std::vector<Suite> suites;
  for (const Check& check : checks) {
    if (suites.empty() || suites.back().name != check.suite) suites.push_back({check.suite, {}});
    suites.back().checks.push_back(&check);
  }
  return suites;
}

void add_suite(pugi::xml_node root, const Suite& suite, size_t id, const JUnitStamp& stamp) {
  pugi::xml_node node = root.append_child("testsuite");
  set(node, "package", "tprimat.compare");
  set(node, "id", std::to_string(id));
  set(node, "name", suite.name);
  set(node, "timestamp", stamp.timestamp);
  set(node, "hostname", stamp.hostname);
  set(node, "tests", std::to_string(suite.checks.size()));
  set(node, "failures", std::to_string(suite.count(State::failed)));
  set(node, "errors", std::to_string(suite.count(State::error)));
  set(node, "skipped", std::to_string(suite.count(State::skipped)));
  set(node, "time", "0");
  node.append_child("properties");
  for (const Check* check : suite.checks) add_case(node, *check);
  node.append_child("system-out");
  node.append_child("system-err");
}

// As in the runner's toolkit (actions/toolkit, command.ts): property values also escape the separators.
std::string escape_command(std::string_view text, bool is_property) {
  std::string out;
  const std::string_view hidden = is_property ? "%\r\n:," : "%\r\n";
  for (const char c : printable(text, "\r\n"))  // a terminal would obey the others
    out += hidden.find(c) == std::string_view::npos ? std::string(1, c) : fmt::format("%{:02X}", c);
  return out;
}

struct Annotation {
  int rank = 0;  // 0 error, 1 warning, 2 notice
  std::string title, message;
};

std::string render_annotation(const Annotation& annotation) {
  constexpr const char* k_commands[] = {"error", "warning", "notice"};
  return std::string("::") + k_commands[annotation.rank] + " title=" + escape_command(annotation.title, true) +
         "::" + escape_command(annotation.message, false) + '\n';
}

void annotate_check(const Check& check, std::vector<Annotation>& all) {
  if (check.kind == "file" || (check.state == State::passed && check.kind != "gate")) return;
  const int rank = check.state == State::passed ? 2 : check.state == State::skipped ? 1 : 0;
  const std::string what = check.kind == "gate" ? check.name : check.kind + " " + check.name;
  all.push_back({rank, check.suite + ": " + what, check.sentence});
}

void annotate_findings(const ModelGroup& group, const std::string& whose, const std::vector<Finding>& findings,
                       std::vector<Annotation>& all) {
  for (const Finding& finding : findings)
    if (finding.severity == Severity::warning)
      all.push_back(
          {1, group.model + ": " + whose, finding.sentence + (finding.remedy.empty() ? "" : " -> " + finding.remedy)});
}

}  // namespace

std::string render_junit(const Comparison& comparison, const JUnitStamp& stamp) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  const std::vector<Check> checks = list_checks(comparison);
  size_t id = 0;
  for (const Suite& suite : gather_suites(checks)) add_suite(root, suite, id++, stamp);
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

std::string render_annotations(const Comparison& comparison) {
  std::vector<Annotation> all;
  for (const Check& check : list_checks(comparison)) annotate_check(check, all);
  for (const ModelGroup& group : comparison.groups) {
    for (const Contender& contender : group.contenders)
      annotate_findings(group, contender.label, contender.findings, all);
    for (const Pair& pair : group.pairs) annotate_findings(group, pair_name(group, pair), pair.findings, all);
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::string out;
  for (const Annotation& annotation : all) out += render_annotation(annotation);
  return out;
}

}  // namespace tprimat::results
