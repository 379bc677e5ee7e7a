#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/draw_plot.h"
#include "report/html/page.h"
#include "report/step_timeline.h"
#include "report/why_report.h"
#include "report/why_tables.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view page_css, theme_js, why_html, why_css, why_data_js, why_timeline_js;
extern const std::string_view why_csp;  // the hashes of styles and scripts, as a Content-Security-Policy
}  // namespace embedded

namespace {

constexpr size_t k_part_width = 160;

constexpr const std::string_view* k_styles[] = {&embedded::page_css, &embedded::why_css};
constexpr const std::string_view* k_scripts[] = {&embedded::why_data_js, &embedded::theme_js,
                                                 &embedded::why_timeline_js};

// From the middle to the left where B is faster, to the right where it is slower. A drawing: the page allows no style
// of an element's own.
std::string render_bar(double seconds, double largest) {
  const double half = largest > 0 ? 50 * std::fabs(seconds) / largest : 0;
  return fmt::format(
      "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
      "class=\"axis\" "
      "x=\"49.8\" width=\"0.4\" height=\"10\"/><rect class=\"{}\" x=\"{:.2f}\" width=\"{:.2f}\" height=\"10\"/></svg>",
      seconds > 0 ? "slower" : "faster", seconds > 0 ? 50 : 50 - half, half);
}

std::string render_row(const std::vector<std::string>& cells, const std::string& bar, const char* kind) {
  std::string out = fmt::format("<div class=\"row {}\">", kind);
  for (size_t i = 0; i < cells.size(); ++i)
    out += fmt::format("<span class=\"{}\">{}</span>", i == 0 ? "name" : "num", escape_html(cells[i]));
  return out + "<span>" + bar + "</span></div>";
}

std::string render_term(const Ledger& ledger, const WhyRow& row, double largest) {
  const TextTable parts = row.term == nullptr ? TextTable{} : tabulate_parts(ledger, *row.term, k_part_width);
  const std::string line = render_row(row.cells, render_bar(row.seconds, largest), parts.rows.empty() ? "plain" : "");
  if (parts.rows.empty()) return line + "\n";
  return fmt::format("<details><summary>{}</summary><div class=\"parts\">\n{}</div></details>\n", line,
                     render_html_table(parts));
}

std::string render_terms(const Ledger& ledger, const WhyTables& tables) {
  double largest = 0;
  for (const WhyRow& row : tables.rows) largest = std::max(largest, std::fabs(row.seconds));
  std::string out = render_row(tables.header, "", "head") + "\n";
  for (const WhyRow& row : tables.rows) out += render_term(ledger, row, largest);
  return out + render_row(tables.total, "", "total") + "\n";
}

}  // namespace

std::string render_why_page(const Ledger& ledger, const std::vector<SideTimeline>& timelines) {
  Json sides = Json::array();
  for (const SideTimeline& each : timelines) {
    Json side = timeline_to_json(each.timeline);
    side["label"] = each.label;
    sides.push_back(std::move(side));
  }
  const WhyTables tables = tabulate_why(ledger, false);
  const std::string title = escape_html(describe_gap(ledger));
  const std::string body = fmt::format(
      fmt::runtime(embedded::why_html), fmt::arg("title", title), fmt::arg("sides", render_html_table(tables.sides)),
      fmt::arg("causes", render_html_lines(tables.causes, "verdicts")),
      fmt::arg("remainder", render_html_lines({tables.remainder}, "lines")),
      fmt::arg("picture", render_svg(plot_why(ledger))), fmt::arg("terms", render_terms(ledger, tables)),
      fmt::arg("classes", tables.classes.rows.empty() ? "" : render_html_table(tables.classes)),
      fmt::arg("notes", render_html_lines(tables.notes, "lines")));
  return render_frame({embedded::why_csp, title, k_styles, k_scripts}, body, Json{{"timelines", std::move(sides)}});
}

}  // namespace tprimat::results
