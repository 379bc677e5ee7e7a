#include "planner/plan_validation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "planner/memory.h"
#include "planner/published_workload.h"
#include "planner/step_time.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

using SweptRows = std::vector<const PlannedRow*>;

constexpr size_t k_min_rows = 4;
constexpr double k_like_size = 1.1;

SweptFamily summarise_sweep(const SweptRows& rows) {
  const auto [small, large] = std::ranges::minmax_element(rows, {}, &PlannedRow::parameters);
  const std::string models =
      (*small)->model == (*large)->model ? (*small)->model : (*small)->model + " to " + (*large)->model;
  std::vector<double> predicted, published;
  for (const PlannedRow* row : rows) predicted.push_back(*row->predicted), published.push_back(*row->published);
  SweptFamily family;
  family.of = fmt::format("{} on {} {}", models, rows.front()->gpus, rows.front()->gpu);
  family.rows = static_cast<int64_t>(rows.size());
  family.spearman = spearman(predicted, published);
  const auto chosen = std::ranges::max_element(predicted) - predicted.begin();
  family.best_behind = std::ranges::max(published) / published[static_cast<size_t>(chosen)] - 1;
  return family;
}

// Cuts rows of one GPU and number of GPUs where sizes leap.
std::vector<SweptRows> split_by_size(SweptRows rows) {
  std::ranges::stable_sort(rows, {}, &PlannedRow::parameters);
  std::vector<SweptRows> groups;
  for (const PlannedRow* row : rows) {
    if (groups.empty() || row->parameters > k_like_size * groups.back().back()->parameters) groups.emplace_back();
    groups.back().push_back(row);
  }
  return groups;
}

std::string describe_layout(const Workload& w) {
  const Layout& l = w.layout;
  std::string text = fmt::format("{} GPUs TP{} PP{}", l.num_gpus(), l.tensor, l.pipeline);
  if (l.chunks > 1) text += fmt::format(" VP{}", l.chunks);
  if (l.context > 1) text += fmt::format(" CP{}", l.context);
  text += fmt::format(" DP{} MBS{} GBS{} SL{}", l.data, l.micro_batch, w.global_batch, w.sequence_length);
  if (l.recompute != Recompute::none) text += fmt::format(" {}", enum_name(l.recompute));
  return text;
}

constexpr std::string_view k_no_rate = "no rate";

double measured_seconds(const PublishedWorkload& read) {
  const Workload& w = read.workload;
  if (read.tokens_per_second_per_gpu <= 0) return 0;
  return static_cast<double>(w.global_batch) * static_cast<double>(w.sequence_length) / read.tokens_per_second_per_gpu /
         static_cast<double>(w.layout.num_gpus());
}

// Activations of all layers in flight over those of the same layout without recomputation and sequence parallelism.
double activation_share(const Workload& workload) {
  Workload plain = workload;
  plain.layout.recompute = Recompute::none;
  plain.layout.sequence_parallel = false;
  return layer_activation_bytes(workload) / layer_activation_bytes(plain);
}

void plan_memory(PlannedRow& planned, const PublishedWorkload& read, const ParameterSet& parameters) {
  if (!read.missing.empty() && read.missing != k_no_rate) return;
  const MemoryEstimate memory = estimate_memory(read.workload, parameters);
  if (!std::isfinite(memory.total())) return;
  if (read.memory_bytes)
    planned.memory_error = predict_bytes(read.workload, parameters, read.memory_reading) / *read.memory_bytes - 1;
  if (read.activation_bytes) planned.activation_error = memory.activations / *read.activation_bytes - 1;
  if (read.activation_share) planned.activation_error = activation_share(read.workload) / *read.activation_share - 1;
  const bool fits = memory.total() <= read.machine.memory_bytes;
  if (read.out_of_memory || read.memory_bytes || read.tokens_per_second_per_gpu > 0)
    planned.fits = fits, planned.ran = !read.out_of_memory;
}

PlannedRow plan_row(const PublishedRow& row, const ParameterSet& parameters) {
  const PublishedWorkload read = read_published_workload(row);
  PlannedRow planned;
  planned.line = row.line;
  planned.model = row.cell("model");
  planned.gpu = read.machine.id;
  plan_memory(planned, read, parameters);
  if (!read.missing.empty()) {
    planned.missing = read.missing;
    return planned;
  }
  const Workload& w = read.workload;
  planned.precision = std::string(enum_name(w.precision));
  planned.layout = describe_layout(w);
  planned.gpus = w.layout.num_gpus();
  planned.parameters = static_cast<double>(count_parameters(w.shape).total());
  planned.assumptions = read.assumptions;
  const double seconds = predict_seconds(parameters, read.machine, w);
  if (!std::isfinite(seconds / measured_seconds(read))) {
    planned.missing = "implausible figures";
    return planned;
  }
  planned.published = read.tokens_per_second_per_gpu;
  planned.predicted = read.tokens_per_second_per_gpu * measured_seconds(read) / seconds;
  planned.error = seconds / measured_seconds(read) - 1;
  return planned;
}

using ErrorsBy = std::map<std::string, std::vector<double>>;

void collect(ErrorsBy& by, const PlannedTable& table) {
  for (const PlannedRow& row : table.rows) {
    if (row.memory_error) by["memory"].push_back(*row.memory_error);
    if (row.activation_error) by["activations"].push_back(*row.activation_error);
    if (!row.error) continue;
    for (const std::string& key : {std::string("all"), "gpu " + row.gpu, "precision " + row.precision})
      by[key].push_back(*row.error);
  }
}

std::vector<PlanErrors> summarise(const ErrorsBy& by) {
  std::vector<PlanErrors> errors;
  for (const auto& [key, values] : by) errors.push_back(errors_of(key, values));
  return errors;
}

std::string render_plan_rows(const PlannedTable& table) {
  TextTable text{
      {"line", "model", "GPU", "precision", "layout", "published", "predicted", "error", "notes"}, {}, {0, 5, 6, 7}};
  for (const PlannedRow& row : table.rows) {
    if (row.missing) {
      text.rows.push_back({std::to_string(row.line), printable(row.model.substr(0, 40)), row.gpu, "", "", "", "", "",
                           "not predicted: " + printable(*row.missing)});
      continue;
    }
    std::string notes;
    for (const std::string& each : row.assumptions) notes += (notes.empty() ? "assumed " : ", assumed ") + each;
    text.rows.push_back({std::to_string(row.line), printable(row.model.substr(0, 40)), row.gpu, row.precision,
                         row.layout, format_count(*row.published), format_count(*row.predicted),
                         signed_percent(*row.error), notes});
  }
  return render_text(text);
}

void add_error_rows(TextTable& text, const std::string& table, const std::vector<PlanErrors>& errors) {
  for (const PlanErrors& each : errors) {
    text.rows.push_back(error_cells(each));
    text.rows.back().insert(text.rows.back().begin(), printable(table));
  }
}

std::string render_sweeps(const std::vector<PlannedTable>& tables) {
  TextTable text{{"table", "sweep of", "rows", "Spearman", "predicted best behind best"}, {}, {2, 3, 4}};
  for (const PlannedTable& table : tables)
    for (const SweptFamily& family : table.sweeps)
      text.rows.push_back({printable(table.table), printable(family.of), std::to_string(family.rows),
                           fmt::format("{:.2f}", family.spearman), format_percent(family.best_behind)});
  return text.rows.empty() ? "" : "\n" + render_text(text);
}

std::string render_reasons(const std::vector<PlannedTable>& tables) {
  TextTable text{{"table", "not predicted", "rows"}, {}, {2}};
  for (const PlannedTable& table : tables)
    for (const auto& [reason, rows] : table.not_predicted)
      text.rows.push_back({printable(table.table), printable(reason), std::to_string(rows)});
  return text.rows.empty() ? "" : "\n" + render_text(text);
}

}  // namespace

PlanErrors errors_of(std::string of, std::vector<double> errors) {
  PlanErrors result;
  result.of = std::move(of);
  result.rows = static_cast<int64_t>(errors.size());
  if (errors.empty()) return result;
  result.bias = quantile(errors, 0.5);
  for (double& each : errors) each = std::fabs(each);
  result.median = quantile(errors, 0.5);
  result.p90 = quantile(errors, 0.9);
  result.worst = std::ranges::max(errors);
  return result;
}

std::string signed_percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f} %", 100 * *fraction) : "";
}

std::vector<std::string> error_cells(const PlanErrors& errors) {
  return {errors.of,
          std::to_string(errors.rows),
          format_percent(errors.median),
          format_percent(errors.p90),
          format_percent(errors.worst),
          signed_percent(errors.bias)};
}

std::vector<SweptFamily> find_sweeps(const std::vector<PlannedRow>& rows) {
  std::map<std::pair<std::string, int64_t>, SweptRows> by_machine;
  for (const PlannedRow& row : rows)
    if (row.predicted && row.published) by_machine[{row.gpu, row.gpus}].push_back(&row);
  std::map<int64_t, SweptFamily> by_line;
  for (const auto& [machine, together] : by_machine)
    for (const SweptRows& group : split_by_size(together))
      if (group.size() >= k_min_rows)
        by_line[(*std::ranges::min_element(group, {}, &PlannedRow::line))->line] = summarise_sweep(group);
  std::vector<SweptFamily> sweeps;
  for (auto& [line, family] : by_line) sweeps.push_back(std::move(family));
  return sweeps;
}

namespace {

using ParametersOf = std::function<const ParameterSet&(const PublishedRow&)>;

PlannedTable plan_each(const PublishedTable& table, const ParametersOf& parameters) {
  PlannedTable planned;
  planned.table = table.name;
  for (const PublishedRow& row : table.rows) {
    const PlannedRow& each = planned.rows.emplace_back(plan_row(row, parameters(row)));
    if (each.missing) ++planned.not_predicted[*each.missing];
  }
  ErrorsBy by;
  collect(by, planned);
  planned.errors = summarise(by);
  planned.sweeps = find_sweeps(planned.rows);
  return planned;
}

}  // namespace

PlannedTable plan_table(const PublishedTable& table, const ParameterSet& parameters) {
  return plan_each(table, [&](const PublishedRow&) -> const ParameterSet& { return parameters; });
}

std::vector<PlanErrors> join_errors(const std::vector<PlannedTable>& tables) {
  ErrorsBy by;
  for (const PlannedTable& table : tables) collect(by, table);
  return summarise(by);
}

std::string render_plan_validation(const std::vector<PlannedTable>& tables, bool every_row) {
  std::string text;
  if (every_row)
    for (const PlannedTable& table : tables)
      text += fmt::format("{}, tokens/s per GPU\n\n{}\n", printable(table.table), render_plan_rows(table));
  TextTable errors{
      {"table", "rows of", "rows", "median error", "90th percentile", "worst", "bias"}, {}, {2, 3, 4, 5, 6}};
  for (const PlannedTable& table : tables) add_error_rows(errors, table.table, table.errors);
  if (tables.size() > 1) add_error_rows(errors, "together", join_errors(tables));
  return text + render_text(errors) + render_sweeps(tables) + render_reasons(tables);
}

std::vector<Observation> observations_of(const PublishedTable& table) {
  std::vector<Observation> observations;
  for (const PublishedRow& row : table.rows) {
    const PublishedWorkload read = read_published_workload(row);
    if (!read.weak.empty()) continue;
    if (read.missing.empty() || (read.missing == k_no_rate && read.memory_bytes))
      observations.push_back(
          {read.workload, read.machine, measured_seconds(read), read.memory_bytes, read.memory_reading});
  }
  return observations;
}

namespace {

// All rows of one model, GPU, number of GPUs and precision, so that near copies fall into one fold.
int64_t fold_of(const std::string& table, const PublishedRow& row, int64_t folds) {
  const std::string group = fmt::format("{}|{}|{}|{}|{}", table, row.cell("model"), row.cell("gpu"), row.cell("n_gpus"),
                                        row.cell("precision"));
  return static_cast<int64_t>(XXH64(group.data(), group.size(), 0) % static_cast<uint64_t>(folds));
}

ParameterSet fit_without(const std::vector<PublishedTable>& tables, const ParameterSet& parameters, int64_t fold,
                         int64_t folds) {
  std::vector<Observation> observations;
  for (const PublishedTable& table : tables) {
    PublishedTable kept{table.name, {}};
    for (const PublishedRow& row : table.rows)
      if (fold_of(table.name, row, folds) != fold) kept.rows.push_back(row);
    const auto more = observations_of(kept);
    observations.insert(observations.end(), more.begin(), more.end());
  }
  return calibrate(parameters, observations);
}

}  // namespace

std::vector<PlannedTable> cross_validate(const std::vector<PublishedTable>& tables, const ParameterSet& parameters,
                                         int64_t folds) {
  ParameterSet priors = parameters;
  priors.reset();
  std::vector<ParameterSet> fitted;
  for (int64_t fold = 0; fold < folds; ++fold) fitted.push_back(fit_without(tables, priors, fold, folds));
  std::vector<PlannedTable> planned;
  for (const PublishedTable& table : tables)
    planned.push_back(plan_each(table, [&](const PublishedRow& row) -> const ParameterSet& {
      return fitted[static_cast<size_t>(fold_of(table.name, row, folds))];
    }));
  return planned;
}

}  // namespace tprimat::planner
