#include "published/validation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "published/readings.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// One decimal more than the table prints; both ends where the row leaves much open.
std::string format_ours(const FigureCheck& figure) {
  if (!figure.computed || !figure.low || !figure.high) return "";
  const size_t point = figure.printed.find('.');
  const size_t printed = point == std::string::npos ? 0 : figure.printed.size() - point - 1;
  const size_t decimals = std::min<size_t>(printed + 1, 6);
  constexpr double k_wide = 1.04;
  if (*figure.high > k_wide * *figure.low) return fmt::format("{:.1f} to {:.1f}", *figure.low, *figure.high);
  return fmt::format("{:.{}f}", *figure.computed, decimals);
}

std::string describe_way(const FigureCheck& figure) {
  if (figure.lacks) return printable(*figure.lacks);
  std::string text = fmt::format("{} from {}", figure.convention.value_or(""), figure.from.value_or(""));
  if (figure.peak) text += fmt::format(", {}", *figure.peak);
  for (const std::string& deviation : figure.deviations) text += fmt::format("; {}", deviation);
  return text;
}

std::string figure_name(const std::string& column) {
  if (column == "tflops_per_gpu") return "TFLOP/s";
  return column == "mfu_pct" ? "MFU %" : "HFU %";
}

std::string render_rows(const TableCheck& check) {
  TextTable table{{"line", "model", "figure", "printed", "ours", "verdict", "how"}, {}, {0, 3, 4}};
  for (const RowCheck& row : check.rows)
    for (const FigureCheck& figure : row.figures)
      table.rows.push_back({std::to_string(row.line), printable(row.model.substr(0, 40)), figure_name(figure.figure),
                            printable(figure.printed.substr(0, 20)), format_ours(figure),
                            std::string(enum_name(figure.verdict)), describe_way(figure)});
  return table.rows.empty() ? "no row prints TFLOP/s, MFU or HFU\n" : render_text(table);
}

std::string render_deviations(const std::vector<TableCheck>& tables) {
  std::set<std::string_view> granted;
  for (const TableCheck& check : tables)
    for (const RowCheck& row : check.rows)
      for (const FigureCheck& figure : row.figures)
        if (figure.verdict == Standing::explained) granted.insert(figure.deviations.begin(), figure.deviations.end());
  if (granted.empty()) return "";
  TextTable table{{"deviation", "meaning"}, {}, {}};
  for (const DeviationRule& rule : deviation_rules())
    if (granted.count(rule.name) > 0) table.rows.push_back({std::string(rule.name), std::string(rule.meaning)});
  return render_text(table) + "\n";
}

std::string render_counts(const std::vector<TableCheck>& tables) {
  TextTable table{
      {"table", "reproduced", "explained", "unexplained", "lacking", "rows without figures"}, {}, {1, 2, 3, 4, 5}};
  for (const TableCheck& check : tables)
    table.rows.push_back({printable(check.table), std::to_string(check.reproduced), std::to_string(check.explained),
                          std::to_string(check.unexplained), std::to_string(check.lacking),
                          std::to_string(check.rows_without_figures)});
  return render_text(table);
}

}  // namespace

std::string render_validation(const std::vector<TableCheck>& tables) {
  std::string text;
  for (const TableCheck& check : tables) text += fmt::format("{}\n\n{}\n", printable(check.table), render_rows(check));
  return text + render_deviations(tables) + render_counts(tables);
}

}  // namespace tprimat::planner
