#include "sinks/run_columns.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "result/metrics.h"
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

template <class T>
Cell part_of_estimate(const Metric& metric, const RunResult& result, T Estimate::*member) {
  const auto figure = metric.read(result);
  return figure && std::isfinite(figure->value) ? to_cell((*figure).*member) : Cell();
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
}

bool is_safe(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }

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

}  // namespace tprimat::results
