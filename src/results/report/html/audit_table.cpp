#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compare/audit.h"
#include "report/html/html_text.h"
#include "report/html/sections.h"

namespace tprimat::results {
namespace {

// The same finding about several participants stands once, with all their letters.
struct AuditRow {
  const Finding* finding;
  std::vector<std::string> whose;
};

class AuditRows {
 public:
  void add(const std::vector<Finding>& findings, const std::string& whose) {
    for (const Finding& finding : findings) {
      const auto [found, is_new] = places_.try_emplace(finding.code + '\n' + finding.sentence, rows_.size());
      if (is_new) rows_.push_back({&finding, {}});
      std::vector<std::string>& all = rows_[found->second].whose;
      if (all.empty() || all.back() != whose) all.push_back(whose);
    }
  }
  std::vector<AuditRow> worst_first() && {
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const AuditRow& a, const AuditRow& b) { return a.finding->severity > b.finding->severity; });
    return std::move(rows_);
  }

 private:
  std::map<std::string, size_t> places_;
  std::vector<AuditRow> rows_;
};

// The rule's own words; what follows them in the finding's sentence are the figures that show it.
std::string_view rule_sentence(const Finding& finding) {
  for (const PairRule& rule : pair_rules())
    if (rule.code == finding.code && finding.sentence.starts_with(rule.sentence)) return rule.sentence;
  for (const RunRule& rule : run_rules())
    if (rule.code == finding.code && finding.sentence.starts_with(rule.sentence)) return rule.sentence;
  return finding.sentence;
}

std::string list_whose(const std::vector<std::string>& whose) {
  constexpr size_t k_max = 12;
  std::string text;
  for (size_t i = 0; i < std::min(whose.size(), k_max); ++i) text += (i > 0 ? ", " : "") + whose[i];
  return whose.size() > k_max ? text + fmt::format(" and {} more", whose.size() - k_max) : text;
}

std::string render_why(const Finding& finding) {
  return finding.why.empty() ? "" : fmt::format("<p class=\"why\">{}</p>", escape_html(finding.why));
}

std::string render_finding(const std::string& model, const AuditRow& row) {
  const Finding& finding = *row.finding;
  const std::string_view rule = rule_sentence(finding);
  std::string evidence = finding.sentence.substr(rule.size());
  if (evidence.starts_with(": ")) evidence = evidence.substr(2);
  return fmt::format(
      "<tr><td><span "
      "class=\"{0}\">{0}</span></td><td>{1}</td><td>{2}</td><td>{3}{4}</td><td>{5}</td><td>{6}</td></tr>\n",
      enum_name(finding.severity), escape_html(model), escape_html(list_whose(row.whose)), escape_html(rule),
      render_why(finding), escape_html(evidence), escape_html(finding.remedy));
}

}  // namespace

std::string render_audit(const Comparison& comparison) {
  std::string rows;
  for (const ModelGroup& group : comparison.groups) {
    AuditRows all;
    for (const Pair& pair : group.pairs)
      all.add(pair.findings, fmt::format("{} against {}", group.contenders[pair.reference].letter,
                                         group.contenders[pair.subject].letter));
    for (const Contender& contender : group.contenders) all.add(contender.findings, contender.letter);
    for (const AuditRow& row : std::move(all).worst_first()) rows += render_finding(group.model, row);
  }
  if (rows.empty()) return "<p class=\"good\">nothing found</p>\n";
  return "<div class=\"scroll\" role=\"region\" aria-label=\"Findings\" tabindex=\"0\"><table "
         "id=\"audit-table\">\n<thead><tr><th scope=\"col\">severity</th>"
         "<th scope=\"col\">model</th><th scope=\"col\">runs</th><th scope=\"col\">finding</th>"
         "<th scope=\"col\">evidence, in the order of the runs</th><th scope=\"col\">what to do</th></tr></thead>\n"
         "<tbody>\n" +
         rows + "</tbody></table></div>\n";
}

}  // namespace tprimat::results
