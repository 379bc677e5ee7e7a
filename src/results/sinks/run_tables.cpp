#include "sinks/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "result/metrics.h"
#include "result/summary.h"
#include "text/words.h"

namespace tprimat::results {
namespace {

Cell to_cell(const std::string& value) { return value.empty() ? Cell() : Cell(value); }
Cell to_cell(bool value) { return std::string(value ? "true" : "false"); }
Cell to_cell(int64_t value) { return value; }
Cell to_cell(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
template <NamedEnum E>
Cell to_cell(E value) {
  return std::string(enum_name(value));
}
template <class T>
Cell to_cell(const std::optional<T>& value) {
  return value ? to_cell(*value) : Cell();
}

template <class T>
struct ValueOf {
  using type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using type = T;
};

template <class T>
constexpr CellType type_of() {
  using Value = typename ValueOf<T>::type;
  if (std::is_same_v<Value, int64_t>) return CellType::whole;
  return std::is_same_v<Value, double> ? CellType::real : CellType::text;
}

class ColumnList {
 public:
  template <class T>
  void add(std::string key, ColumnKind kind, T RunResult::*member) {
    add_reader(std::move(key), kind, type_of<T>(), [member](const RunResult& r) { return to_cell(r.*member); });
  }

  // Every field of a part of the result.
  template <class Part>
  void add_part(Part RunResult::*part) {
    for_each_field<Part>([&](const auto& field) {
      using Value = std::decay_t<decltype(std::declval<Part>().*field.member)>;
      add_reader(std::string(field.key), ColumnKind::setting, type_of<Value>(),
                 [part, member = field.member](const RunResult& r) { return to_cell(r.*part.*member); });
    });
  }

  void add_reader(std::string key, ColumnKind kind, CellType type, std::function<Cell(const RunResult&)> read) {
    columns.push_back({std::move(key), kind, type, [read](const ExportedRun& run) { return read(run.result); }});
  }

  std::vector<RunColumn> columns;
};

void add_identity(ColumnList& list) {
  using enum ColumnKind;
  list.columns.push_back({"run", identity, CellType::text, [](const ExportedRun& run) { return Cell(run.name); }});
  list.columns.push_back({"file", identity, CellType::text, [](const ExportedRun& run) { return Cell(run.file); }});
  list.add("status", identity, &RunResult::status);
  list.add("status_reason", identity, &RunResult::status_reason);
  list.add("failure_kind", identity, &RunResult::failure_kind);
  list.add("timestamp", identity, &RunResult::timestamp);
}

void add_settings(ColumnList& list) {
  using enum ColumnKind;
  list.add("platform", setting, &RunResult::platform);
  list.add("framework", setting, &RunResult::framework);
  list.add("framework_installation", setting, &RunResult::framework_installation);
  list.add("framework_version", setting, &RunResult::framework_version);
  list.add_reader("model", setting, CellType::text, [](const RunResult& r) { return to_cell(r.model_info.name); });
  list.add_reader("num_parameters", setting, CellType::whole,
                  [](const RunResult& r) { return to_cell(r.model_info.num_parameters); });
  list.add("precision", setting, &RunResult::precision);
  list.add("dataset", setting, &RunResult::dataset);
  list.add("config_hash", setting, &RunResult::config_hash);
  list.add_part(&RunResult::gpu_info);
  list.add_part(&RunResult::training_config);
  list.add_part(&RunResult::parallelism_config);
}

// A run whose routing was forced must not pass for one that learned it.
void add_experts(ColumnList& list) {
  const auto add = [&](const char* key, auto ExpertFigures::*member) {
    list.add_reader(key, ColumnKind::setting, CellType::text,
                    [member](const RunResult& r) { return r.experts ? to_cell(*r.experts.*member) : Cell(); });
  };
  const auto add_size = [&](const char* key, int64_t Experts::*member) {
    list.add_reader(key, ColumnKind::setting, CellType::whole, [member](const RunResult& r) {
      const auto& shape = r.model_info.shape;
      return shape && shape->is_sparse() ? to_cell(*shape->experts.*member) : Cell();
    });
  };
  add_size("experts", &Experts::count), add_size("experts_per_token", &Experts::per_token);
  add("routing", &ExpertFigures::routing);
  add("dispatcher", &ExpertFigures::dispatcher);
}

template <class T>
Cell part_of_estimate(const Metric& metric, const RunResult& result, T Estimate::*member) {
  const auto figure = metric.read(result);
  return figure && std::isfinite(figure->value) ? to_cell(limit_interval(*figure, metric.range).*member) : Cell();
}

void add_figures(ColumnList& list) {
  using enum ColumnKind;
  list.add_reader("total_steps", figure, CellType::whole, [](const RunResult& r) {
    return r.performance_metrics ? to_cell(r.performance_metrics->total_steps) : Cell();
  });
  list.add_reader("warmup_steps_excluded", figure, CellType::whole,
                  [](const RunResult& r) { return to_cell(r.warmup.steps_excluded); });
  for (const Metric& metric : metrics()) {
    const std::string key(metric.key);
    const auto add = [&](const std::string& name, auto member) {
      list.add_reader(name, figure, CellType::real,
                      [&metric, member](const RunResult& r) { return part_of_estimate(metric, r, member); });
    };
    add(key, &Estimate::value), add(key + "_ci95_low", &Estimate::low), add(key + "_ci95_high", &Estimate::high);
  }
  list.add_reader("z_loss", figure, CellType::real,
                  [](const RunResult& r) { return r.experts ? to_cell(r.experts->z_loss) : Cell(); });
}

bool is_safe(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }

constexpr StepFigure k_step_figures[] = {
    {"step_time_seconds", "train/seconds_per_step", &StepRow::step_time_seconds},
    {"tokens_per_second", "train/tokens_per_second", &StepRow::tokens_per_second},
    {"loss", "train/loss", &StepRow::loss},
    {"validation_loss", "validation/loss", &StepRow::validation_loss},
    {"learning_rate", "train/learning_rate", &StepRow::learning_rate},
    {"grad_norm", "train/grad_norm", &StepRow::grad_norm},
    {"loss_scale", "train/loss_scale", &StepRow::loss_scale},
    {"expert_load", "experts/load", &StepRow::expert_load},
    {"dropped_share", "experts/dropped_share", &StepRow::dropped_share},
    {"aux_loss", "experts/aux_loss", &StepRow::aux_loss},
    {"z_loss", "experts/z_loss", &StepRow::z_loss},
    {"memory_allocated_gb", "memory/allocated_gb", &StepRow::memory_allocated_gb},
    {"power_watts_per_gpu", "power/watts_per_gpu", &StepRow::power_watts_per_gpu},
    {"energy_joules_per_gpu", "power/joules_per_gpu", &StepRow::energy_joules_per_gpu}};

std::optional<double> finite_entry(const std::vector<double>& series, size_t entry) {
  if (entry >= series.size() || !std::isfinite(series[entry])) return std::nullopt;
  return series[entry];
}

using ReportedSeries = std::optional<std::vector<double>> ReportedFigures::*;

std::optional<double> reported_entry(const RunResult& result, ReportedSeries member, size_t entry) {
  if (!result.reported || !(*result.reported.*member)) return std::nullopt;
  return finite_entry(*(*result.reported.*member), entry);
}

std::optional<double> expert_entry(const RunResult& result, std::optional<std::vector<double>> ExpertFigures::*member,
                                   size_t entry) {
  if (!result.experts || !(*result.experts.*member)) return std::nullopt;
  return finite_entry(*(*result.experts.*member), entry);
}

// A time without a calendar date is omitted.
std::optional<double> stamp_of(const RunResult& result, size_t entry) {
  const auto stamp = reported_entry(result, &ReportedFigures::unix_time, entry);
  return stamp && has_calendar_year(*stamp) ? stamp : std::nullopt;
}

int64_t steps_in_entry(const RunResult& result, size_t entry) {
  if (!result.steps || !result.steps->mean_of || entry >= result.steps->mean_of->size()) return 1;
  return std::max<int64_t>(1, (*result.steps->mean_of)[entry]);
}

size_t count_entries(const RunResult& result) {
  return std::max({result.step_times.size(), result.loss_values.size(), result.learning_rates.size(),
                   result.grad_norms.size(), result.memory_values.size()});
}

std::map<int64_t, StepLabel> labels_by_step(const RunResult& result) {
  std::map<int64_t, StepLabel> labels;
  if (result.steps)
    for (const LabelledStep& each : result.steps->labelled) labels[each.step] = each.label;
  return labels;
}

std::map<int64_t, double> evaluations_by_step(const RunResult& result) {
  std::map<int64_t, double> losses;
  if (result.events)
    for (const RunEvent& event : *result.events)
      if (event.kind == EventKind::evaluation && event.step && event.value && std::isfinite(*event.value))
        losses[*event.step] = *event.value;
  return losses;
}

void fill_figures(StepRow& row, const RunResult& result, size_t entry) {
  row.loss = finite_entry(result.loss_values, entry);
  row.learning_rate = finite_entry(result.learning_rates, entry);
  row.grad_norm = finite_entry(result.grad_norms, entry);
  row.memory_allocated_gb = finite_entry(result.memory_values, entry);
  row.loss_scale = reported_entry(result, &ReportedFigures::loss_scale, entry);
  row.expert_load = expert_entry(result, &ExpertFigures::load_values, entry);
  row.dropped_share = expert_entry(result, &ExpertFigures::dropped_values, entry);
  row.aux_loss = expert_entry(result, &ExpertFigures::aux_loss_values, entry);
  row.z_loss = expert_entry(result, &ExpertFigures::z_loss_values, entry);
  row.power_watts_per_gpu = reported_entry(result, &ReportedFigures::power_watts_per_gpu, entry);
  row.energy_joules_per_gpu = reported_entry(result, &ReportedFigures::energy_joules_per_gpu, entry);
}

// tokens of a step / its time; else the rate that the framework printed.
void fill_speed(StepRow& row, const RunResult& result, size_t entry) {
  const auto seconds = finite_entry(result.step_times, entry);
  if (seconds && is_valid_step_time(*seconds)) row.step_time_seconds = seconds;
  const auto tokens = tokens_per_step(result);
  row.tokens_per_second = tokens && row.step_time_seconds
                              ? static_cast<double>(*tokens) / *row.step_time_seconds
                              : reported_entry(result, &ReportedFigures::tokens_per_second, entry);
}

double duration_of(const StepRow& row) { return row.step_time_seconds.value_or(0) * static_cast<double>(row.mean_of); }

// A step without a time stamp ends its own duration after the one before.
void fill_clock(std::vector<StepRow>& rows, const RunResult& result) {
  const auto start = start_of_steps(result);
  double elapsed = 0, end = start.value_or(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    elapsed += duration_of(rows[i]);
    end = stamp_of(result, i).value_or(end + duration_of(rows[i]));
    rows[i].seconds_since_start = elapsed;
    if (start && has_calendar_year(end)) rows[i].unix_time = end;
  }
}

}  // namespace

std::string make_run_name(std::string_view path) {
  constexpr size_t k_longest_name = 120;  // with "-2" and an extension, below the 255 of file systems
  std::string name = std::filesystem::path(path).stem().string().substr(0, k_longest_name);
  for (char& c : name)
    if (!is_safe(c)) c = '_';
  if (name.empty()) return "run";
  if (name.front() == '.' || name.front() == '-') name.front() = '_';
  return name;
}

const std::vector<RunColumn>& run_columns() {
  static const std::vector<RunColumn> k_columns = [] {
    ColumnList list;
    add_identity(list);
    add_settings(list);
    add_experts(list);
    add_figures(list);
    return list.columns;
  }();
  return k_columns;
}

std::string cell_text(const Cell& cell) {
  if (const auto* whole = std::get_if<int64_t>(&cell)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? *text : "";
}

std::span<const StepFigure> step_figures() { return k_step_figures; }

std::optional<double> start_of_steps(const RunResult& result) {
  double elapsed = 0;
  for (size_t i = 0; i < result.step_times.size(); ++i) {
    const double seconds = result.step_times[i];
    elapsed += is_valid_step_time(seconds) ? seconds * static_cast<double>(steps_in_entry(result, i)) : 0;
    if (const auto stamp = stamp_of(result, i))
      return has_calendar_year(*stamp - elapsed) ? std::optional(*stamp - elapsed) : std::nullopt;
  }
  return parse_timestamp(result.timestamp);
}

int64_t to_milliseconds(double seconds) {
  return has_calendar_year(seconds) ? static_cast<int64_t>(std::llround(seconds * 1e3)) : 0;
}

std::vector<StepRow> make_step_rows(const RunResult& result) {
  const auto labels = labels_by_step(result);
  const auto evaluations = evaluations_by_step(result);
  std::vector<StepRow> rows(count_entries(result));
  for (size_t i = 0; i < rows.size(); ++i) {
    StepRow& row = rows[i];
    row.step = step_number(result, i);
    row.mean_of = steps_in_entry(result, i);
    fill_speed(row, result, i);
    fill_figures(row, result, i);
    if (const auto label = labels.find(row.step); label != labels.end()) row.label = label->second;
    if (const auto loss = evaluations.find(row.step); loss != evaluations.end()) row.validation_loss = loss->second;
    row.steady = !row.label && row.step_time_seconds && static_cast<int64_t>(i) >= result.warmup.steps_excluded;
  }
  fill_clock(rows, result);
  return rows;
}

}  // namespace tprimat::results
