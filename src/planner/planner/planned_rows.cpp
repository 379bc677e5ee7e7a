#include "planner/planned_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "planner/memory.h"
#include "planner/step_time.h"
#include "planner/time_to_target.h"
#include "published/cells.h"

namespace tprimat::planner {
namespace {

constexpr std::string_view k_no_rate = "no rate";

std::string describe_layout(const Workload& w) {
  const Layout& l = w.layout;
  std::string text = fmt::format("{} GPUs TP{} PP{}", l.num_gpus(), l.tensor, l.pipeline);
  if (l.chunks > 1) text += fmt::format(" VP{}", l.chunks);
  if (l.context > 1) text += fmt::format(" CP{}", l.context);
  if (l.expert > 1) text += fmt::format(" EP{}", l.expert);
  if (l.expert_tensor > 1) text += fmt::format(" ETP{}", l.expert_tensor);
  text += fmt::format(" DP{} MBS{} GBS{} SL{}", l.data, l.micro_batch, w.global_batch, w.sequence_length);
  if (l.recompute != Recompute::none) text += fmt::format(" {}", enum_name(l.recompute));
  return text;
}

// What else a prediction rests on.
std::vector<std::string> list_settings(const Workload& w) {
  std::vector<std::string> settings = {std::string(enum_name(w.layout.sharding))};
  if (w.routing) settings.emplace_back(enum_name(*w.routing));
  if (w.dispatcher) settings.emplace_back(enum_name(*w.dispatcher));
  const std::pair<bool, const char*> switches[] = {{w.overlaps_experts, "overlapped experts"},
                                                   {w.graphs != Graphs::none, "graphs"},
                                                   {w.scaled_by_row, "scaled by row"},
                                                   {w.scaled_by_block, "scaled by block"},
                                                   {!w.compiled, "not compiled"},
                                                   {!w.asynchronous_tensor, "synchronous tensor parallelism"},
                                                   {!w.layers_of_places.empty(), "explicit stages"}};
  for (const auto& [on, name] : switches)
    if (on) settings.emplace_back(name);
  if (w.recomputed_share != 1) settings.push_back(fmt::format("{:g} of recomputation", w.recomputed_share));
  return settings;
}

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
  const MemoryEstimate memory = estimate_memory(read.workload, parameters);
  if (!std::isfinite(memory.total())) return;
  if (read.memory_bytes)
    planned.memory_error = predict_bytes(read.workload, parameters, read.memory_reading) / *read.memory_bytes - 1;
  if (read.activation_bytes) planned.activation_error = memory.activations / *read.activation_bytes - 1;
  if (read.activation_share) planned.activation_error = activation_share(read.workload) / *read.activation_share - 1;
  const bool fits = memory.needed() <= read.machine.memory_bytes;
  if (read.out_of_memory || read.memory_bytes || read.tokens_per_second_per_gpu > 0)
    planned.fits = fits, planned.ran = !read.out_of_memory;
}

void describe_row(PlannedRow& planned, const PublishedWorkload& read) {
  const Workload& w = read.workload;
  planned.kind = std::string(enum_name(model_kind(w)));
  planned.vendor = vendor_of(read.machine.architecture);
  planned.program = w.family->id;
  planned.precision = std::string(enum_name(w.precision));
  planned.layout = describe_layout(w);
  planned.settings = list_settings(w);
  planned.gpus = w.layout.num_gpus();
  planned.parameters = static_cast<double>(count_parameters(w.shape).total());
  planned.assumptions = read.assumptions;
}

}  // namespace

bool ReadRow::is_described() const { return read.missing.empty() || read.missing == k_no_rate; }

bool ReadRow::is_measured() const { return read.missing.empty() && read.weak.empty(); }

bool ReadRow::is_fitted() const { return is_measured() || (is_described() && read.weak.empty() && read.memory_bytes); }

Observation ReadRow::observation() const {
  return {read.workload, read.machine, measured_seconds(read), read.memory_bytes, read.memory_reading};
}

std::vector<ReadRow> read_rows(const PublishedTable& table) {
  std::vector<ReadRow> rows;
  for (const PublishedRow& row : table.rows) rows.push_back({&row, read_published_workload(row)});
  return rows;
}

std::vector<MeasuredGroup> count_measured(const std::vector<const ReadRow*>& rows) {
  std::map<std::tuple<std::string, std::string, ModelKind, std::string>, MeasuredGroup> groups;
  for (const ReadRow* row : rows) {
    if (!row->is_measured()) continue;
    const Workload& w = row->read.workload;
    const Machine& machine = row->read.machine;
    const std::string precision(enum_name(w.precision));
    MeasuredGroup& group = groups[{machine.id, w.family->id, model_kind(w), precision}];
    group = {machine.id, machine.architecture, w.family->id, precision, model_kind(w), group.rows + 1};
  }
  std::vector<MeasuredGroup> measured;
  for (auto& [key, group] : groups) measured.push_back(std::move(group));
  return measured;
}

namespace {

void plan_minutes(PlannedRow& planned, const ReadRow& row, double step_seconds) {
  planned.minutes = minutes_to_target(target_task(*row.row), row.read.workload, step_seconds);
  if (const auto published = parse_printed(row.row->cell("ttt_min_olympic_mean")))
    planned.published_minutes = published->value;
  if (planned.minutes && planned.published_minutes)
    planned.minutes_error = *planned.minutes / *planned.published_minutes - 1;
}

}  // namespace

PlannedRow plan_row(const ReadRow& row, const ParameterSet& parameters) {
  const PublishedWorkload& read = row.read;
  PlannedRow planned;
  planned.line = row.row->line;
  planned.model = row.row->cell("model");
  planned.gpu = read.machine.id;
  if (!read.weak.empty()) planned.weak = read.weak;
  if (row.is_described()) {
    describe_row(planned, read);
    plan_memory(planned, read, parameters);
  }
  if (!read.missing.empty()) {
    planned.missing = read.missing;
    return planned;
  }
  const double measured = measured_seconds(read), seconds = predict_seconds(parameters, read.machine, read.workload);
  if (!std::isfinite(seconds / measured)) {
    planned.missing = "implausible figures";
    return planned;
  }
  planned.published = read.tokens_per_second_per_gpu;
  planned.predicted = read.tokens_per_second_per_gpu * measured / seconds;
  planned.error = seconds / measured - 1;
  plan_minutes(planned, row, seconds);
  return planned;
}

void set_interval(PlannedRow& planned, const PredictionInterval& interval) {
  if (!planned.error || !interval.is_known()) return;
  planned.low = interval.low, planned.high = interval.high, planned.basis = interval.basis;
}

PlannedTable gather_planned(const std::string& table, std::vector<PlannedRow> rows) {
  PlannedTable planned;
  planned.table = table;
  ErrorGroups groups;
  for (const PlannedRow& row : rows) {
    if (row.missing) ++planned.not_predicted[*row.missing];
    groups.add(row);
  }
  planned.errors = groups.summarise();
  planned.sweeps = find_sweeps(rows);
  planned.rows = std::move(rows);
  return planned;
}

}  // namespace tprimat::planner
