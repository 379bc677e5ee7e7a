#include <fmt/format.h>

#include <algorithm>

#include "compare/audit.h"
#include "report/document.h"
#include "report/draw_plot.h"
#include "report/figures.h"
#include "report/html/page.h"
#include "report/report.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view frame_html, page_html, chart_js, page_css, data_js, theme_js, run_table_js, charts_js,
    panels_js, settings_js, formulas_js, page_js;
extern const std::string_view page_csp;  // the hashes of styles and scripts, as a Content-Security-Policy
}  // namespace embedded

namespace {

constexpr const std::string_view* k_styles[] = {&embedded::page_css};
constexpr const std::string_view* k_scripts[] = {&embedded::chart_js,     &embedded::data_js,     &embedded::theme_js,
                                                 &embedded::run_table_js, &embedded::charts_js,   &embedded::panels_js,
                                                 &embedded::settings_js,  &embedded::formulas_js, &embedded::page_js};

// The page has separate sections for these.
bool is_told_elsewhere(const std::string& heading) {
  return heading.empty() || heading == k_speed_heading || heading == k_resources_heading || heading == "Audit";
}

// Long lists are collapsed.
std::string open_remark(const std::string& model, const std::string& heading, size_t rows) {
  constexpr size_t k_max_open = 40;
  return fmt::format("<details class=\"remark\"{}><summary><h3>{}: {}</h3></summary>\n",
                     rows <= k_max_open ? " open" : "", escape_html(model), escape_html(heading));
}

size_t count_rows(const Document& document, size_t heading) {
  size_t rows = 0;
  for (size_t i = heading + 1; i < document.size() && document[i].kind != DocumentPart::Kind::heading &&
                               document[i].kind != DocumentPart::Kind::title;
       ++i)
    rows += document[i].lines.size() + document[i].table.rows.size();
  return rows;
}

bool is_reading_aid(const DocumentPart& part) {
  return part.kind == DocumentPart::Kind::lines && !part.lines.empty() && part.lines.front().tone == Tone::faint;
}

// The headlines of each model, from build_document.
std::string render_verdicts(const Document& document) {
  std::string out;
  for (size_t i = 0; i + 1 < document.size(); ++i)
    if (document[i].kind == DocumentPart::Kind::title)
      out += fmt::format("<h3>{}</h3>\n", escape_html(document[i].text)) +
             render_html_lines(document[i + 1].lines, "verdicts");
  return out;
}

// The other parts of build_document for each model: pairs, notes, files.
std::string render_remarks(const Document& document) {
  std::string out, model, heading;
  bool is_open = false;
  for (size_t i = 0; i < document.size(); ++i) {
    const DocumentPart& part = document[i];
    const bool begins = part.kind == DocumentPart::Kind::title || part.kind == DocumentPart::Kind::heading;
    if (begins && is_open) out += "</details>\n", is_open = false;
    if (part.kind == DocumentPart::Kind::title) model = part.text, heading.clear();
    if (part.kind == DocumentPart::Kind::heading) heading = part.text;
    if (is_told_elsewhere(heading) || is_reading_aid(part)) continue;
    if (begins)
      out += open_remark(model, heading, count_rows(document, i)), is_open = true;
    else
      out += part.kind == DocumentPart::Kind::table ? render_html_table(part.table)
                                                    : render_html_lines(part.lines, "lines");
  }
  return is_open ? out + "</details>\n" : out;
}

// The end of the document: how to read its figures.
std::string render_reading_aid(const Document& document) {
  std::string out;
  for (const DocumentPart& part : document)
    if (is_reading_aid(part))
      for (const Line& line : part.lines) out += fmt::format("<p>{}</p>\n", escape_html(line.text));
  return out;
}

// Every metric with its formula. Scripts add the numbers of each run.
std::string render_formulas(const Comparison& comparison) {
  std::string out;
  for (const Metric& metric : metrics()) {
    const bool known = std::ranges::any_of(comparison.groups, [&](const ModelGroup& group) {
      const auto present = present_metrics(group);
      return std::ranges::find(present, &metric) != present.end();
    });
    out += fmt::format(
        "<details class=\"formula\" id=\"formula-{0}\" data-metric=\"{0}\"><summary>{1}{2}</summary>\n"
        "<p><code>{0}</code> = {3}</p>\n</details>\n",
        metric.key, escape_html(metric.title), known ? "" : " <span class=\"faint\">unknown for all runs</span>",
        escape_html(metric.formula));
  }
  return out;
}

// "12 runs of 3 models"
std::string count_runs(const Comparison& comparison) {
  size_t runs = 0;
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) runs += contender.runs.size();
  const size_t models = comparison.groups.size();
  const std::string of = models == 1 ? comparison.groups.front().model : fmt::format("{} models", models);
  return fmt::format("{} run{} of {}", runs, runs == 1 ? "" : "s", of);
}

// The rule's text without the figures behind it in the finding's sentence.
std::string_view rule_sentence(const Finding& finding) {
  for (const PairRule& rule : pair_rules())
    if (rule.code == finding.code && finding.sentence.starts_with(rule.sentence)) return rule.sentence;
  for (const RunRule& rule : run_rules())
    if (rule.code == finding.code && finding.sentence.starts_with(rule.sentence)) return rule.sentence;
  return finding.sentence;
}

std::string render_finding(const std::string& model, const Remark& remark) {
  constexpr size_t k_max_named = 12;
  const Finding& finding = remark.finding;
  const std::string_view rule = rule_sentence(finding);
  std::string evidence = finding.sentence.substr(rule.size());
  if (evidence.starts_with(": ")) evidence = evidence.substr(2);
  return fmt::format(
      "<tr><td><span "
      "class=\"{0}\">{0}</span></td><td>{1}</td><td>{2}</td><td>{3}{4}</td><td>{5}</td><td>{6}</td></tr>\n",
      enum_name(finding.severity), escape_html(model), escape_html(remark.list_whose(k_max_named)), escape_html(rule),
      finding.why.empty() ? "" : fmt::format("<p class=\"why\">{}</p>", escape_html(finding.why)),
      escape_html(evidence), escape_html(finding.remedy));
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  return out;
}

std::string render_html_lines(const std::vector<Line>& lines, const char* list_class) {
  constexpr const char* k_tones[] = {"plain", "good", "doubtful", "bad", "faint"};
  std::string out = fmt::format("<ul class=\"{}\">\n", list_class);
  for (const Line& line : lines) {
    out += fmt::format("<li class=\"{}\">{}", k_tones[static_cast<size_t>(line.tone)], escape_html(line.text));
    if (!line.aside.empty()) out += fmt::format("<span class=\"aside\">{}</span>", escape_html(line.aside));
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

std::string render_html_table(const TextTable& table) {
  std::string out = "<div class=\"scroll\" role=\"region\" aria-label=\"Table\" tabindex=\"0\"><table>\n<thead><tr>";
  const auto alignment = [&](size_t column) {
    return std::ranges::find(table.right, column) != table.right.end() ? " class=\"num\"" : "";
  };
  for (size_t i = 0; i < table.header.size(); ++i)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", alignment(i), escape_html(table.header[i]));
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += fmt::format("<td{}>{}</td>", alignment(i), escape_html(row[i]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// These characters occur only inside strings, where JSON allows Unicode escapes.
std::string escape_script_json(const Json& value) {
  constexpr std::pair<std::string_view, std::string_view> k_escapes[] = {
      {"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\xe2\x80\xa8", "\\u2028"}, {"\xe2\x80\xa9", "\\u2029"}};
  const std::string json = print_json_line(value);
  std::string out;
  out.reserve(json.size() + json.size() / 50);
  for (std::string_view rest = json; !rest.empty();) {
    const auto* escape =
        std::ranges::find_if(k_escapes, [&](const auto& each) { return rest.starts_with(each.first); });
    const bool is_plain = escape == std::end(k_escapes);
    out += is_plain ? rest.substr(0, 1) : escape->second;
    rest.remove_prefix(is_plain ? 1 : escape->first.size());
  }
  return out;
}

std::string render_frame(const PageFrame& frame, const std::string& body, const Json& data) {
  std::string styles, scripts;
  for (const std::string_view* style : frame.styles) styles.append("<style>").append(*style).append("</style>\n");
  for (const std::string_view* script : frame.scripts) scripts.append("<script>").append(*script).append("</script>\n");
  return fmt::format(fmt::runtime(embedded::frame_html), fmt::arg("policy", frame.policy),
                     fmt::arg("title", frame.title), fmt::arg("styles", styles), fmt::arg("body", body),
                     fmt::arg("data", escape_script_json(data)), fmt::arg("scripts", scripts));
}

std::string render_audit(const Comparison& comparison) {
  const auto name_pair = [](const ModelGroup& group, const Pair& pair) {
    return group.contenders[pair.reference].letter + " against " + group.contenders[pair.subject].letter;
  };
  std::string rows;
  for (const ModelGroup& group : comparison.groups)
    for (const Remark& remark : gather_findings(group, name_pair)) rows += render_finding(group.model, remark);
  if (rows.empty()) return "<p class=\"good\">nothing found</p>\n";
  return "<div class=\"scroll\" role=\"region\" aria-label=\"Findings\" tabindex=\"0\"><table "
         "id=\"audit-table\">\n<thead><tr><th scope=\"col\">severity</th>"
         "<th scope=\"col\">model</th><th scope=\"col\">runs</th><th scope=\"col\">finding</th>"
         "<th scope=\"col\">evidence, in the order of the runs</th><th scope=\"col\">what to do</th></tr></thead>\n"
         "<tbody>\n" +
         rows + "</tbody></table></div>\n";
}

std::string render_html(const Comparison& comparison) {
  const Document document = build_document(comparison);
  const std::string title = "Comparison of " + escape_html(count_runs(comparison));
  const std::string body = fmt::format(
      fmt::runtime(embedded::page_html), fmt::arg("title", title), fmt::arg("verdicts", render_verdicts(document)),
      fmt::arg("runs", render_run_table(comparison)), fmt::arg("audit", render_audit(comparison)),
      fmt::arg("picture", render_svg(plot_comparison(comparison))), fmt::arg("formulas", render_formulas(comparison)),
      fmt::arg("remarks", render_remarks(document)), fmt::arg("reading_aid", render_reading_aid(document)));
  return render_frame({embedded::page_csp, title, k_styles, k_scripts}, body, page_to_json(comparison));
}

}  // namespace tprimat::results
