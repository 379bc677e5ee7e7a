#include <fmt/format.h>

#include "report/why_report.h"
#include "report/why_tables.h"

namespace tprimat::results {
namespace {

constexpr size_t k_part_width = 40;

void add_terms(const WhyTables& tables, Document& document) {
  TextTable table{tables.header, {}, {1, 2, 3, 4, 5}};
  for (const WhyRow& row : tables.rows) table.rows.push_back(row.cells);
  table.rows.push_back(tables.total);
  document.push_back(make_table(std::move(table)));
  if (!tables.folded.empty())
    document.push_back(make_lines({{"Other terms: " + join(tables.folded, ", ") + ".", Tone::faint, ""}}));
}

void add_details(const Ledger& ledger, const WhyTables& tables, Document& document) {
  for (const WhyRow& row : tables.rows) {
    if (row.term == nullptr || row.term->details.empty()) continue;
    document.push_back(make_heading(fmt::format("{}: {} ms", row.cells[0], row.cells[3])));
    document.push_back(make_table(tabulate_parts(ledger, *row.term, k_part_width)));
  }
  if (tables.classes.rows.empty()) return;
  document.push_back(make_heading("Sum of durations by class of kernel; overlapping kernels count in full"));
  document.push_back(make_table(tables.classes));
}

}  // namespace

Document build_why(const Ledger& ledger, bool all) {
  const WhyTables tables = tabulate_why(ledger, all);
  Document document{make_title(describe_gap(ledger)), make_lines(list_sides(ledger))};
  add_terms(tables, document);
  document.push_back(make_heading("Causes"));
  document.push_back(make_lines(tables.causes));
  document.push_back(make_heading("Remainder"));
  std::vector<Line> lines{tables.remainder};
  lines.insert(lines.end(), tables.notes.begin(), tables.notes.end());
  document.push_back(make_lines(std::move(lines)));
  if (all) add_details(ledger, tables, document);
  make_printable(document);
  return document;
}

std::string render_why(const Ledger& ledger, const WhyStyle& style) {
  return render_terminal(build_why(ledger, style.all), style.colour, style.width);
}

}  // namespace tprimat::results
