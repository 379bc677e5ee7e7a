#include "report/html/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/figures.h"
#include "report/html/html_text.h"

namespace tprimat::results {
namespace {

const char* tone_class(Tone tone) {
  switch (tone) {
    case Tone::good: return "good";
    case Tone::doubtful: return "doubtful";
    case Tone::bad: return "bad";
    case Tone::faint: return "faint";
    case Tone::plain: break;
  }
  return "plain";
}

std::string render_lines(const std::vector<Line>& lines, const char* list_class) {
  std::string out = fmt::format("<ul class=\"{}\">\n", list_class);
  for (const Line& line : lines) {
    out += fmt::format("<li class=\"{}\">{}", tone_class(line.tone), escape_html(line.text));
    if (!line.aside.empty()) out += fmt::format("<span class=\"aside\">{}</span>", escape_html(line.aside));
    out += "</li>\n";
  }
  return out + "</ul>\n";
}

// Sections of their own on the page tell these.
bool is_told_elsewhere(const std::string& heading) {
  return heading.empty() || heading == "Figures" || heading == "Audit";
}

// Long lists are folded away: a table of 2000 pairs is no reading.
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

}  // namespace

std::string render_table(const TextTable& table) {
  std::string out = "<div class=\"scroll\" role=\"region\" aria-label=\"Table\" tabindex=\"0\"><table>\n<thead><tr>";
  const auto alignment = [&](size_t column) {
    return std::find(table.right.begin(), table.right.end(), column) != table.right.end() ? " class=\"num\"" : "";
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

std::string render_verdicts(const Document& document) {
  std::string out;
  for (size_t i = 0; i + 1 < document.size(); ++i)
    if (document[i].kind == DocumentPart::Kind::title)
      out +=
          fmt::format("<h3>{}</h3>\n", escape_html(document[i].text)) + render_lines(document[i + 1].lines, "verdicts");
  return out;
}

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
      out += part.kind == DocumentPart::Kind::table ? render_table(part.table) : render_lines(part.lines, "lines");
  }
  return is_open ? out + "</details>\n" : out;
}

std::string render_reading_aid(const Document& document) {
  std::string out;
  for (const DocumentPart& part : document)
    if (is_reading_aid(part))
      for (const Line& line : part.lines) out += fmt::format("<p>{}</p>\n", escape_html(line.text));
  return out;
}

std::string render_formulas(const Comparison& comparison) {
  std::string out;
  for (const Metric& metric : metrics()) {
    const bool known = std::any_of(comparison.groups.begin(), comparison.groups.end(), [&](const ModelGroup& group) {
      const auto present = present_metrics(group);
      return std::find(present.begin(), present.end(), &metric) != present.end();
    });
    out += fmt::format(
        "<details class=\"formula\" id=\"formula-{0}\" data-metric=\"{0}\"><summary>{1}{2}</summary>\n"
        "<p><code>{0}</code> = {3}</p>\n</details>\n",
        metric.key, escape_html(metric.title), known ? "" : " <span class=\"faint\">not known of any run</span>",
        escape_html(metric.formula));
  }
  return out;
}

std::string count_runs(const Comparison& comparison) {
  size_t runs = 0;
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) runs += contender.runs.size();
  const size_t models = comparison.groups.size();
  const std::string of = models == 1 ? comparison.groups.front().model : fmt::format("{} models", models);
  return fmt::format("{} run{} of {}", runs, runs == 1 ? "" : "s", of);
}

}  // namespace tprimat::results
