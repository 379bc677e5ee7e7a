#include "planner/plan_validation.h"

#include <fmt/format.h>

#include "planner/planned_rows.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

std::string describe_notes(const PlannedRow& row) {
  std::string notes = row.weak ? "weak: " + *row.weak : "";
  if (row.minutes) {
    notes += fmt::format("{}{:.3g} min to the target", notes.empty() ? "" : ", ", *row.minutes);
    if (row.published_minutes) notes += fmt::format(" (published: {:.3g})", *row.published_minutes);
  }
  for (const std::string& each : row.assumptions) notes += (notes.empty() ? "assumed " : ", assumed ") + each;
  return notes;
}

std::string interval_cell(const PlannedRow& row) {
  if (!row.low || !row.high) return "";
  return fmt::format("{} to {}", format_count(*row.predicted / *row.high), format_count(*row.predicted / *row.low));
}

std::string render_plan_rows(const PlannedTable& table) {
  TextTable text{{"line", "model", "GPU", "precision", "layout", "published", "predicted", "error", "80 %", "notes"},
                 {},
                 {0, 5, 6, 7, 8}};
  for (const PlannedRow& row : table.rows) {
    const std::string model = printable(row.model.substr(0, 40));
    if (row.missing) {
      text.rows.push_back({std::to_string(row.line), model, row.gpu, "", "", "", "", "", "",
                           "not predicted: " + printable(*row.missing)});
      continue;
    }
    text.rows.push_back({std::to_string(row.line), model, row.gpu, row.precision, row.layout,
                         format_count(*row.published), format_count(*row.predicted), signed_percent(*row.error),
                         interval_cell(row), describe_notes(row)});
  }
  return render_text(text);
}

void add_error_rows(TextTable& text, const std::string& table, const std::vector<PlanErrors>& errors) {
  for (const PlanErrors& each : errors) {
    text.rows.push_back(error_cells(each));
    text.rows.back().insert(text.rows.back().begin(), printable(table));
    text.rows.back().push_back(each.covered ? format_percent(*each.covered, 0) : "");
  }
}

std::string render_sweeps(const ValidationReport& report) {
  TextTable text{{"table", "sweep of", "rows", "Spearman", "predicted best behind best"}, {}, {2, 3, 4}};
  for (const PlannedTable& table : report.tables)
    for (const SweptFamily& family : table.sweeps)
      text.rows.push_back({printable(table.table), printable(family.of), std::to_string(family.rows),
                           fmt::format("{:.2f}", family.spearman), format_percent(family.best_behind)});
  if (text.rows.empty()) return "";
  const auto add_median = [&](const std::string& of, double spearman) {
    text.rows.push_back({"together", "median of " + of, "", fmt::format("{:.2f}", spearman), ""});
  };
  for (const auto& [kind, spearman] : report.ranking.by_kind) add_median(kind + " models", spearman);
  add_median(fmt::format("all {} sweeps", report.ranking.sweeps), *report.ranking.median_spearman);
  return "\n" + render_text(text);
}

std::string render_reasons(const std::vector<PlannedTable>& tables) {
  TextTable text{{"table", "not predicted", "rows"}, {}, {2}};
  for (const PlannedTable& table : tables)
    for (const auto& [reason, rows] : table.not_predicted)
      text.rows.push_back({printable(table.table), printable(reason), std::to_string(rows)});
  return text.rows.empty() ? "" : "\n" + render_text(text);
}

}  // namespace

PlannedTable plan_table(const PublishedTable& table, const ParameterSet& parameters) {
  std::vector<PlannedRow> planned;
  for (const ReadRow& row : read_rows(table)) {
    PlannedRow& each = planned.emplace_back(plan_row(row, parameters));
    if (each.error) set_interval(each, prediction_interval(row.read.workload, row.read.machine, parameters));
  }
  return gather_planned(table.name, std::move(planned));
}

std::vector<PlanErrors> join_errors(const std::vector<PlannedTable>& tables) {
  ErrorGroups groups;
  for (const PlannedTable& table : tables)
    for (const PlannedRow& row : table.rows) {
      groups.add(row);
      groups.add_under(row, fmt::format("gpu {}, {}", row.gpu, row.kind));
      groups.add_under(row, fmt::format("program {}, {}", row.program, row.kind));
      groups.add_under(row, fmt::format("vendor {}, {}", row.vendor, row.kind));
      groups.add_under(row, "table " + table.table);
    }
  return groups.summarise();
}

ValidationReport make_validation_report(std::vector<PlannedTable> tables) {
  ValidationReport report;
  report.together = join_errors(tables);
  std::vector<SweptFamily> sweeps;
  for (const PlannedTable& table : tables) sweeps.insert(sweeps.end(), table.sweeps.begin(), table.sweeps.end());
  report.ranking = judge_ranking(sweeps);
  report.tables = std::move(tables);
  return report;
}

std::string render_plan_validation(const ValidationReport& report, bool every_row) {
  std::string text;
  if (every_row)
    for (const PlannedTable& table : report.tables)
      text += fmt::format("{}, tokens/s per GPU\n\n{}\n", printable(table.table), render_plan_rows(table));
  TextTable errors{{"table", "rows of", "rows", "median error", "90th percentile", "worst", "bias", "within 80 %"},
                   {},
                   {2, 3, 4, 5, 6, 7}};
  for (const PlannedTable& table : report.tables) add_error_rows(errors, table.table, table.errors);
  if (report.tables.size() > 1) add_error_rows(errors, "together", report.together);
  return text + render_text(errors) + render_sweeps(report) + render_reasons(report.tables);
}

std::vector<Observation> observations_of(const PublishedTable& table) {
  std::vector<Observation> observations;
  for (const ReadRow& row : read_rows(table))
    if (row.is_fitted()) observations.push_back(row.observation());
  return observations;
}

}  // namespace tprimat::planner
