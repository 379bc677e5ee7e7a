#include "published/submissions.h"

#include <fmt/format.h>

#include <algorithm>

#include "published/cells.h"

namespace tprimat::planner {
namespace {

// Names of MLPerf's tasks.
struct BenchmarkModel {
  std::string_view benchmark, model;
};
constexpr BenchmarkModel k_models[] = {{"gpt3", "GPT-3 175B"},
                                       {"llama2_70b_lora", "Llama 2 70B (LoRA)"},
                                       {"llama31_405b", "Llama 3.1 405B"},
                                       {"llama31_8b", "Llama 3.1 8B"}};

void fill(PublishedRow& row, const char* column, std::string text) {
  if (!text.empty() && row.cell(column).empty()) row.cells[column] = std::move(text);
}

std::string model_of(const std::string& benchmark) {
  const auto* known = std::ranges::find(k_models, benchmark, &BenchmarkModel::benchmark);
  return known == std::end(k_models) ? benchmark : std::string(known->model);
}

// Samples or tokens per second of the whole job.
std::string step_seconds(const PublishedRow& row) {
  if (!row.cell("step_time_s_median").empty()) return row.cell("step_time_s_median");
  const auto rate = parse_printed(row.cell("throughput_median"));
  const auto batch = count_cell(row, "gbs"), length = count_cell(row, "seq");
  const std::string& unit = row.cell("throughput_unit");
  const bool tokens = unit == "tokens/s" && length;
  if (!rate || !batch || (unit != "samples/s" && !tokens)) return "";
  const double units = static_cast<double>(*batch) * (tokens ? static_cast<double>(*length) : 1);
  return fmt::format("{:.6f}", units / rate->value);
}

}  // namespace

bool lists_submissions(const std::vector<std::string>& columns) {
  return std::ranges::find(columns, "benchmark") != columns.end() &&
         std::ranges::find(columns, "model") == columns.end();
}

void name_submission_cells(PublishedRow& row) {
  fill(row, "model", model_of(row.cell("benchmark")));
  const std::string round = row.cell("round");
  row.cells["framework"] = fmt::format("MLPerf{}{} {}", round.empty() ? "" : " ", round, row.cell("framework"));
  fill(row, "step_time_s", step_seconds(row));
  // "48.0"
  for (const char* column : {"ga", "gbs", "n_gpus"})
    if (std::string& text = row.cells[column]; text.ends_with(".0")) text.resize(text.size() - 2);
  const std::string file = row.cell("config_file");
  if (row.cell("precision_hint") == "fp4" || mentions(file, "_fp4")) fill(row, "precision", "NVFP4");
  if (const auto micro = find_in_cell(row, "config_file", "_mbs([1-9][0-9]?)[._]"); !micro.empty())
    fill(row, "mbs", micro[0]);
  if (!file.empty()) row.cells["notes"] += "; configuration file " + file;
}

std::optional<std::string> submission_round(const PublishedRow& row) {
  const auto found = find_in_cell(row, "framework", "^MLPerf (v[1-9][0-9]?\\.[0-9])( |$)");
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

}  // namespace tprimat::planner
