#include <algorithm>

#include "report/ci_report.h"
#include "report/figures.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// As the runner's toolkit has it (actions/toolkit, command.ts): a value of a property also hides what separates them.
std::string escape_command(std::string_view text, bool is_property) {
  std::string out;
  for (const char c : printable(text, "\r\n")) {  // a terminal would obey the others
    switch (c) {
      case '%': out += "%25"; continue;
      case '\r': out += "%0D"; continue;
      case '\n': out += "%0A"; continue;
      case ':': out += is_property ? "%3A" : ":"; continue;
      case ',': out += is_property ? "%2C" : ","; continue;
      default: out += c;
    }
  }
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
  using State = Check::State;
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

std::string render_annotations(const Comparison& comparison) {
  std::vector<Annotation> all;
  for (const Check& check : list_checks(comparison)) annotate_check(check, all);
  for (const ModelGroup& group : comparison.groups) {
    for (const Contender& contender : group.contenders)
      annotate_findings(group, contender.label, contender.findings, all);
    for (const Pair& pair : group.pairs) annotate_findings(group, pair_name(group, pair), pair.findings, all);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::string out;
  for (const Annotation& annotation : all) out += render_annotation(annotation);
  return out;
}

}  // namespace tprimat::results
