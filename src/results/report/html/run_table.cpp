#include <fmt/format.h>

#include "compare/contender.h"
#include "report/figures.h"
#include "report/html/page.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// The columns that are shown at first; a button shows the others. Platform and framework are in a run's label.
bool is_chief(std::string_view key) {
  for (const std::string_view each :
       {"device", "GPU cores", "precision", "strategy", "routing", "status", "tokens_per_second_per_gpu", "mfu",
        "mean_step_time", "peak_memory_allocated_gb", "peak_memory_reserved_gb", "peak_device_used_gb", "mean_power",
        "joules_per_token", "tokens_per_wh", "usd_per_1e12_tokens", "tokens_per_usd_hour", "days_per_1e12_tokens",
        "final_loss"})
    if (each == key) return true;
  return false;
}

// A column of the table, and whether any run has a value; columns without values are hidden at first.
struct Column {
  std::string key;
  const Metric* metric = nullptr;  // nullptr: a fact
  bool known = false;
  std::string classes() const {
    return std::string(metric != nullptr ? "num" : "text " + key) + (known && is_chief(key) ? "" : " more");
  }
};

using Facts = std::vector<RunFact>;

// Without values; none if no run is a mixture of experts.
Facts expert_facts_of(const Comparison& comparison) {
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders)
      if (Facts facts = list_expert_facts(contender); !facts.empty()) {
        for (RunFact& fact : facts) fact.value.reset();
        return facts;
      }
  return {};
}

Facts facts_of_row(const Contender& contender, const Facts& of_experts) {
  Facts facts = list_facts(contender);
  const Facts own = list_expert_facts(contender);
  const Facts& more = own.empty() ? of_experts : own;
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

std::vector<Column> list_columns(const Comparison& comparison) {
  std::vector<Column> columns;
  const Facts of_experts = expert_facts_of(comparison);
  for (const RunFact& fact : facts_of_row(comparison.groups.front().contenders.front(), of_experts))
    columns.push_back({std::string(fact.name)});
  for (const Metric& metric : metrics()) columns.push_back({std::string(metric.key), &metric});
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) {
      const Facts facts = facts_of_row(contender, of_experts);
      for (size_t i = 0; i < columns.size(); ++i)
        columns[i].known |=
            i < facts.size() ? facts[i].value.has_value() : read_figure(contender, *columns[i].metric).has_value();
    }
  return columns;
}

// One unit per column, so that its figures can be compared. "" if the title has it.
std::string column_unit(const Metric& metric) {
  if (metric.format == MetricFormat::percent) return "%";
  return metric.title.find(std::string(metric.unit) + " ") == 0 || metric.title == metric.unit
             ? ""
             : std::string(metric.unit);
}

std::string cell_figure(const Metric& metric, double value) {
  switch (metric.format) {
    case MetricFormat::count: return format_count(value);
    case MetricFormat::seconds: return format_significant(value, 4);
    case MetricFormat::gigabytes: return fmt::format("{:.2f}", value);
    case MetricFormat::percent: return fmt::format("{:.1f}", value * 100);
    case MetricFormat::significant: return format_significant(value, 4);
  }
  return "";
}

// "power, mean, W" -> "power, mean": the unit is shown separately.
std::string column_title(const Metric& metric) {
  const std::string title(metric.title), tail = ", " + std::string(metric.unit);
  return !metric.unit.empty() && title.ends_with(tail) ? title.substr(0, title.size() - tail.size()) : title;
}

std::string header_cell(const std::string& key, const std::string& title, const std::string& unit,
                        const std::string& classes) {
  return fmt::format("<th scope=\"col\" data-key=\"{}\" class=\"{}\">{}{}</th>", escape_html(key), classes,
                     escape_html(title),
                     unit.empty() ? "" : fmt::format(" <span class=\"unit\">{}</span>", escape_html(unit)));
}

std::string render_header(const std::vector<Column>& columns) {
  std::string out =
      "<thead><tr>" + header_cell("run", "run", "", "text name") + header_cell("model", "model", "", "text");
  for (const Column& column : columns)
    out += column.metric != nullptr
               ? header_cell(column.key, column_title(*column.metric), column_unit(*column.metric), column.classes())
               : header_cell(column.key, column.key, "", column.classes());
  return out + header_cell("findings", "audit", "", "findings") + "</tr></thead>\n";
}

std::string name_unknown(const std::vector<Column>& columns) {
  std::string names;
  for (const Column& column : columns)
    if (!column.known)
      names += (names.empty() ? "" : "; ") + (column.metric ? column_title(*column.metric) : column.key);
  return names.empty() ? "" : fmt::format("<p class=\"hint\">Unknown for all runs: {}.</p>\n", escape_html(names));
}

std::string figure_cell(const Contender& contender, const Metric& metric, const std::string& classes) {
  const auto figure = read_figure(contender, metric);
  if (!figure) return fmt::format("<td class=\"{} unknown\">not known</td>", classes);
  std::string interval;
  if (figure->low && figure->high)
    interval = fmt::format("<span class=\"ci\">{} to {}</span>", cell_figure(metric, *figure->low),
                           cell_figure(metric, *figure->high));
  return fmt::format("<td class=\"{}\" data-value=\"{}\">{}{}</td>", classes, figure->value,
                     cell_figure(metric, figure->value), interval);
}

std::string findings_cell(const Contender& contender) {
  size_t errors = 0, warnings = 0, notes = 0;
  for (const Finding& finding : contender.findings)
    ++(finding.severity == Severity::error ? errors : finding.severity == Severity::warning ? warnings : notes);
  std::string text;
  const auto add = [&](size_t count, const char* name) {
    if (count > 0) text += fmt::format("<span class=\"{}\">{} {}{}</span> ", name, count, name, count == 1 ? "" : "s");
  };
  add(errors, "error");
  add(warnings, "warning");
  add(notes, "note");
  return fmt::format("<td class=\"findings\" data-value=\"{}\">{}</td>", errors * 1000000 + warnings * 1000 + notes,
                     text.empty() ? "nothing found" : text);
}

// Attributes for filtering the rows.
bool is_filter(std::string_view fact) { return fact == "platform" || fact == "framework" || fact == "strategy"; }

std::string fact_cell(const Contender& contender, const RunFact& fact, const std::string& classes) {
  const bool failed = fact.name == "status" && contender.first().status != RunStatus::complete;
  return fmt::format("<td class=\"{}{}\">{}</td>", classes,
                     !fact.value ? " unknown"
                     : failed    ? " error"
                                 : "",
                     escape_html(fact.text()));
}

std::string render_row(const ModelGroup& group, size_t group_index, size_t index, const std::vector<Column>& columns,
                       const Facts& of_experts) {
  const Contender& contender = group.contenders[index];
  std::string attributes = fmt::format("id=\"run-{0}-{1}\" data-group=\"{0}\" data-run=\"{1}\" data-model=\"{2}\"",
                                       group_index, index, escape_html(group.model)),
              cells = fmt::format("<th scope=\"row\" class=\"text name\"><span class=\"letter\">{}</span> {}</th>",
                                  escape_html(contender.letter), escape_html(contender.label)) +
                      fmt::format("<td class=\"text\">{}</td>", escape_html(group.model));
  const Facts facts = facts_of_row(contender, of_experts);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].metric != nullptr) {
      cells += figure_cell(contender, *columns[i].metric, columns[i].classes());
      continue;
    }
    if (is_filter(facts[i].name))
      attributes += fmt::format(" data-{}=\"{}\"", facts[i].name, escape_html(facts[i].text()));
    cells += fact_cell(contender, facts[i], columns[i].classes());
  }
  return fmt::format("<tr {}>{}{}</tr>\n", attributes, cells, findings_cell(contender));
}

}  // namespace

std::string render_run_table(const Comparison& comparison) {
  const std::vector<Column> columns = list_columns(comparison);
  const Facts of_experts = expert_facts_of(comparison);
  std::string out =
      "<div class=\"scroll tall\" role=\"region\" aria-label=\"Table of runs\" tabindex=\"0\"><table "
      "id=\"run-table\">\n" +
      render_header(columns) + "<tbody>\n";
  for (size_t g = 0; g < comparison.groups.size(); ++g)
    for (size_t c = 0; c < comparison.groups[g].contenders.size(); ++c)
      out += render_row(comparison.groups[g], g, c, columns, of_experts);
  return out + "</tbody></table></div>\n" + name_unknown(columns);
}

}  // namespace tprimat::results
