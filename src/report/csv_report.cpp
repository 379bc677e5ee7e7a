#include <fmt/format.h>

#include "compare/contender.h"
#include "report/figures.h"
#include "report/report.h"
#include "text/format.h"

namespace tprimat {
namespace {

// RFC 4180
std::string quote_csv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string join_cells(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + quote_csv(cells[i]);
  return line + '\n';
}

std::string number(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

std::vector<std::string> header_cells(const Contender& any) {
  std::vector<std::string> cells{"model", "letter", "label", "files"};
  for (const auto& [name, value] : list_facts(any)) cells.push_back(name);
  for (const Metric& metric : metrics())
    for (const char* suffix : {"", "_ci95_low", "_ci95_high"}) cells.push_back(std::string(metric.key) + suffix);
  return cells;
}

std::vector<std::string> contender_cells(const std::string& model, const Contender& contender) {
  std::string files;
  for (const LoadedRun& run : contender.runs) files += (files.empty() ? "" : ";") + run.path;
  std::vector<std::string> cells{model, contender.letter, contender.label, files};
  for (const auto& [name, value] : list_facts(contender)) cells.push_back(value);
  for (std::string& cell : cells) cell = disarm_formula(std::move(cell));
  for (const Metric& metric : metrics()) {
    const auto estimate = read_figure(contender, metric);
    cells.push_back(estimate ? number(estimate->value) : "");
    cells.push_back(estimate ? number(estimate->low) : "");
    cells.push_back(estimate ? number(estimate->high) : "");
  }
  return cells;
}

}  // namespace

std::string render_csv(const Comparison& comparison) {
  std::string out;
  for (const ModelGroup& group : comparison.groups)
    for (const Contender& contender : group.contenders) {
      if (out.empty()) out = join_cells(header_cells(contender));
      out += join_cells(contender_cells(group.model, contender));
    }
  return out;
}

}  // namespace tprimat
