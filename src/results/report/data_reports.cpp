#include "compare/contender.h"
#include "report/figures.h"
#include "report/report.h"
#include "text/csv.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

std::vector<std::string> header_cells(const Contender& any) {
  std::vector<std::string> cells{"model", "letter", "label", "files"};
  for (const RunFact& fact : list_facts(any)) cells.emplace_back(fact.name);
  for (const Metric& metric : metrics())
    for (const char* suffix : {"", "_ci95_low", "_ci95_high"}) cells.push_back(std::string(metric.key) + suffix);
  return cells;
}

std::vector<std::string> contender_cells(const std::string& model, const Contender& contender) {
  std::string files;
  for (const LoadedRun& run : contender.runs) files += (files.empty() ? "" : ";") + run.path;
  std::vector<std::string> cells{model, contender.letter, contender.label, files};
  for (const RunFact& fact : list_facts(contender)) cells.push_back(fact.text());
  for (std::string& cell : cells) cell = csv_text(cell);
  for (const Metric& metric : metrics()) {
    const auto estimate = read_figure(contender, metric);
    cells.push_back(estimate ? csv_number(estimate->value) : "");
    cells.push_back(estimate ? csv_number(estimate->low) : "");
    cells.push_back(estimate ? csv_number(estimate->high) : "");
  }
  return cells;
}

}  // namespace

std::string render_csv(const Comparison& comparison) {
  std::string out;
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) {
      if (out.empty()) out = join(header_cells(contender), ",") + '\n';
      out += join(contender_cells(group.model, contender), ",") + '\n';
    }
  return out;
}

}  // namespace tprimat::results
