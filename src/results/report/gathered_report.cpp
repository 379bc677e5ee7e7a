#include "report/gathered_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/document.h"
#include "result/result_file.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

std::string show_framework(const RunResult& result) {
  return result.framework ? std::string(enum_name(*result.framework)) : "-";
}

std::vector<std::string> row_of(const GatheredFile& gathered) {
  const RunResult& r = gathered.file.result;
  const auto rate = r.derived.tokens_per_second_per_gpu;
  const auto last_loss = r.loss_values.empty() ? std::nullopt : std::optional(r.loss_values.back());
  return {gathered.model,
          show_framework(r),
          r.platform ? std::string(enum_name(*r.platform)) : "-",
          r.performance_metrics ? fmt::format("{}", r.performance_metrics->total_steps) : "0",
          r.statistics ? format_duration(r.statistics->median) : "-",
          rate ? format_count(rate->value) : "-",
          r.derived.mfu ? format_percent(r.derived.mfu->value) : "-",
          !last_loss               ? "-"
          : std::isnan(*last_loss) ? "NaN"
                                   : format_fixed(*last_loss, 4),
          std::string(enum_name(r.status))};
}

// Who states what of one log.
std::string describe(const GatheredFile& gathered) {
  const ExtractedFile& file = gathered.file;
  TextTable table;
  table.rows.push_back({" ", "model", fmt::format("{}: {}", gathered.model, gathered.model_because)});
  table.rows.push_back({" ", "found in", gathered.place});
  table.rows.push_back({" ", "format", file.result.source.format.value_or("not recognised")});
  for (const auto& [from, facts] : describe_assumed(file.result))
    table.rows.push_back({" ", "from " + shorten(from, 60), facts});
  if (!file.result_path.empty()) table.rows.push_back({" ", "result", file.result_path});
  if (file.result.status_reason) table.rows.push_back({" ", "status", shorten(*file.result.status_reason, 90)});
  return printable(file.path) + "\n" + render_text(table);
}

std::string list_passed_over(const GatheredReport& report, bool all) {
  constexpr size_t k_max_shown = 20;
  const size_t shown = all ? report.passed_over.size() : std::min(k_max_shown, report.passed_over.size());
  std::string text = "Passed over:\n";
  for (size_t i = 0; i < shown; ++i)
    text += fmt::format("  {}: {}\n", printable(report.passed_over[i].first), printable(report.passed_over[i].second));
  if (shown < report.passed_over.size())
    text += fmt::format("  and {} more; --verbose lists them\n", report.passed_over.size() - shown);
  return text;
}

}  // namespace

std::string render_gathered(const GatheredReport& report, bool all) {
  TextTable table{
      {"model", "framework", "platform", "steps", "step time", "tokens/s/device", "MFU", "last loss", "status"},
      {},
      {3, 4, 5, 6, 7}};
  std::string details;
  for (const GatheredFile& gathered : report.taken) {
    if (gathered.file.why_nothing.empty()) table.rows.push_back(row_of(gathered));
    details += "\n" + (gathered.file.why_nothing.empty()
                           ? describe(gathered)
                           : fmt::format("{} gave no result: {}\n", printable(gathered.file.path),
                                         printable(gathered.file.why_nothing)));
  }
  std::string text = table.rows.empty() ? "" : render_text(table);
  text += details;
  if (!report.passed_over.empty()) text += (text.empty() ? "" : "\n") + list_passed_over(report, all);
  return text;
}

}  // namespace tprimat::results
