#include <fmt/format.h>

#include <algorithm>

#include "telemetry/telemetry_cells.h"
#include "telemetry/telemetry_rows.h"

namespace tprimat {
namespace {

// Columns of --csv and keys of the flat --json of `monitor`, and columns of `metric --csv`. Times are seconds since
// 1970.
constexpr KnownColumn k_csv_columns[] = {
    {"timestamp", CellMeaning::time},
    {"Timestamp", CellMeaning::time},  // of scripts that print it themselves
    {"gpu", CellMeaning::device},
    {"xcp", CellMeaning::partition},
    {"power_usage", CellMeaning::power, "W"},
    {"socket_power", CellMeaning::power, "W"},
    {"current_socket_power", CellMeaning::power, "W"},
    {"average_socket_power", CellMeaning::power, "W"},
    {"total_energy_consumption", CellMeaning::energy, "J"},
    {"gfx_activity", CellMeaning::utilisation, "%"},
    {"gfx_usage", CellMeaning::utilisation, "%"},
    {"gfx", CellMeaning::utilisation, "%"},
    {"vram_used", CellMeaning::memory_used, "MB"},
    {"used_vram", CellMeaning::memory_used, "MB"},
    {"vram_total", CellMeaning::memory_total, "MB"},
    {"total_vram", CellMeaning::memory_total, "MB"},
    {"hotspot_temperature", CellMeaning::temperature, "C"},
    {"hotspot", CellMeaning::temperature, "C"},
    {"edge", CellMeaning::temperature, "C"},
    {"gfx_clk", CellMeaning::frequency, "MHz"},
    {"gfx_clock", CellMeaning::frequency, "MHz"},
    {"gfx_0_clk", CellMeaning::frequency, "MHz"},
    {"pviol", CellMeaning::power_throttling, "%"},
    {"tviol", CellMeaning::thermal_throttling, "%"},
    {"tviol_active", CellMeaning::thermal_active},
};

// Paths of `metric --json`.
constexpr KnownColumn k_metric_paths[] = {
    {"power.socket_power", CellMeaning::power, "W"},
    {"power.current_socket_power", CellMeaning::power, "W"},
    {"power.average_socket_power", CellMeaning::power, "W"},
    {"energy.total_energy_consumption", CellMeaning::energy, "J"},
    {"usage.gfx_activity", CellMeaning::utilisation, "%"},
    {"usage.gfx_usage", CellMeaning::utilisation, "%"},
    {"mem_usage.used_vram", CellMeaning::memory_used, "MB"},
    {"mem_usage.total_vram", CellMeaning::memory_total, "MB"},
    {"temperature.hotspot", CellMeaning::temperature, "C"},
    {"temperature.edge", CellMeaning::temperature, "C"},
    {"clock.gfx_0.clk", CellMeaning::frequency, "MHz"},
    {"clock.gfx.clk", CellMeaning::frequency, "MHz"},
};

// Columns of the table of `monitor`; names were shortened in ROCm 6.4.
constexpr KnownColumn k_amd_smi_table_columns[] = {
    {"TIMESTAMP", CellMeaning::time},
    {"GPU", CellMeaning::device},
    {"XCP", CellMeaning::partition},
    {"POWER", CellMeaning::power, "W"},
    {"GFX_UTIL", CellMeaning::utilisation, "%"},
    {"GFX%", CellMeaning::utilisation, "%"},
    {"VRAM_USED", CellMeaning::memory_used, "MB"},
    {"VRAM_TOTAL", CellMeaning::memory_total, "MB"},
    {"VRAM_USAGE", CellMeaning::memory_pair, "GB"},
    {"GPU_TEMP", CellMeaning::temperature, "C"},
    {"GPU_T", CellMeaning::temperature, "C"},
    {"GFX_CLOCK", CellMeaning::frequency, "MHz"},
    {"GFX_CLK", CellMeaning::frequency, "MHz"},
    {"PVIOL", CellMeaning::power_throttling, "%"},
    {"TVIOL", CellMeaning::thermal_throttling, "%"},
    {"TVIOL_ACTIVE", CellMeaning::thermal_active},
};

bool is_amd_smi_csv(std::string_view head) {
  for (const std::string_view mark : {"power", "gfx", "vram", "hotspot"})
    if (holds(head, mark)) return holds(head, "gpu,") && has_header(head, csv_form(k_csv_columns));
  return false;
}

void read_amd_csv(std::string_view text, std::string_view, TelemetryRows& rows) {
  read_table(text, csv_form(k_csv_columns), rows);
}

// 171, "171 W", "N/A" or {"value": 171, "unit": "W"}
void set_json(TelemetryRow& row, const KnownColumn& column, const Json& value) {
  if (value.is_string()) return row.set(column, value.text());
  if (value.is_number()) return row.set(column, print_json_line(value));
  if (!value.is_object() || !value.contains("value")) return;
  const Json& number = value["value"];
  const std::string unit = value.contains("unit") && value["unit"].is_string() ? value["unit"].text() : "";
  if (number.is_number()) row.set(column, fmt::format("{} {}", print_json_line(number), unit));
}

const Json* find_path(const Json& object, std::string_view path) {
  const Json* at = &object;
  for (const std::string_view key : split(path, '.')) at = at != nullptr ? at->find(key) : nullptr;
  return at;
}

void read_gpu(const Json& gpu, TelemetryRows& rows) {
  TelemetryRow row;
  for (const auto& vocabulary :
       {std::span<const KnownColumn>(k_csv_columns), std::span<const KnownColumn>(k_metric_paths)})
    for (const KnownColumn& column : vocabulary)
      if (const Json* value = find_path(gpu, column.name)) set_json(row, column, *value);
  rows.add(row);
}

// An array of GPUs, the same inside {"gpu_data": ...}, or arrays of them when watched. Nesting is bounded by
// parse_json.
void read_gpus(const Json& value, TelemetryRows& rows) {
  if (value.is_object() && value.contains("gpu")) return read_gpu(value, rows);
  if (value.is_object() && value.contains("gpu_data")) return read_gpus(value["gpu_data"], rows);
  if (value.is_array())
    for (const Json& each : value) read_gpus(each, rows);
}

bool is_amd_smi_json(std::string_view head) { return holds(head, "\"gpu\"") && (holds(head, "{") || holds(head, "[")); }

void read_amd_smi_json(std::string_view text, std::string_view where, TelemetryRows& rows) {
  const bool whole = for_each_json_document(text, where, [&](const Json& document) { read_gpus(document, rows); });
  if (!whole) rows.note("the last JSON document is truncated and ignored");
}

bool is_unit(std::string_view word) {
  constexpr std::string_view k_units[] = {"W",  "mW", "\u00b0C", "C",    "%",  "MHz", "MB",
                                          "GB", "KB", "B",       "Mb/s", "ns", "mV"};
  return std::find(std::begin(k_units), std::end(k_units), word) != std::end(k_units);
}

// Cells of a row: a unit, and a second number behind a slash, belong to the number before: "171 W", "0.3/ 192.0 GB".
// The alignment of columns changes from release to release, so a row fits by its number of cells alone.
std::vector<std::string_view> table_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (const std::string_view word : split_words(line)) {
    if (cells.empty() && !is_all_digits(word)) return {};  // no device
    const bool goes_on = !cells.empty() && (is_unit(word) || cells.back().ends_with('/'));
    if (!goes_on) {
      cells.push_back(word);
      continue;
    }
    const char* begin = cells.back().data();
    cells.back() = {begin, static_cast<size_t>(word.data() + word.size() - begin)};
  }
  return cells;
}

bool holds_word(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The table of processes has no columns that we know.
std::vector<std::string_view> table_header(std::string_view line, std::span<const KnownColumn>) {
  const auto words = split_words(line);
  if (words.size() < 2 || (words[0] != "GPU" && words[0] != "TIMESTAMP") || !holds_word(words, "GPU")) return {};
  return holds_word(words, "PID") ? std::vector<std::string_view>{"PID"} : words;
}

constexpr TableForm k_amd_smi_table{k_amd_smi_table_columns, table_header, table_cells};

// The names that only `monitor` prints, so that other tables with a column GPU do not match.
bool is_amd_smi_table(std::string_view head) {
  for (std::string_view line; next_line(head, line);)
    for (const std::string_view word : table_header(line, {}))
      if (word == "POWER" || word.ends_with("VIOL") || word.starts_with("GFX") || word.starts_with("VRAM") ||
          word.starts_with("GPU_T") || word.starts_with("MEM_"))
        return true;
  return false;
}

void read_amd_smi_table(std::string_view text, std::string_view, TelemetryRows& rows) {
  read_table(text, k_amd_smi_table, rows);
}

constexpr TelemetryFormat k_amd_smi_formats[] = {
    {"amd-smi json", is_amd_smi_json, read_amd_smi_json},
    {"amd-smi csv", is_amd_smi_csv, read_amd_csv},
    {"amd-smi monitor", is_amd_smi_table, read_amd_smi_table},
};

}  // namespace

std::span<const TelemetryFormat> amd_smi_formats() { return k_amd_smi_formats; }

}  // namespace tprimat
