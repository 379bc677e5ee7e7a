#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "telemetry/telemetry_rows.h"

namespace tprimat {
namespace {

// Columns of --query-gpu (nvidia-smi --help-query-gpu). memory.* are MiB, clocks MHz.
constexpr KnownColumn k_query_columns[] = {
    {"timestamp", CellMeaning::time},
    {"index", CellMeaning::device},
    {"uuid", CellMeaning::device},
    {"gpu_uuid", CellMeaning::device},
    {"pci.bus_id", CellMeaning::device},
    {"gpu_bus_id", CellMeaning::device},
    {"name", CellMeaning::name},
    {"gpu_name", CellMeaning::name},
    {"power.draw", CellMeaning::power, "W"},
    {"power.draw.average", CellMeaning::power, "W"},
    {"power.draw.instant", CellMeaning::power, "W"},
    {"utilization.gpu", CellMeaning::utilisation, "%"},
    {"memory.used", CellMeaning::memory_used, "MiB"},
    {"memory.total", CellMeaning::memory_total, "MiB"},
    {"temperature.gpu", CellMeaning::temperature, "C"},
    {"clocks.sm", CellMeaning::frequency, "MHz"},
    {"clocks.current.sm", CellMeaning::frequency, "MHz"},
    {"clocks.gr", CellMeaning::frequency, "MHz"},
    {"clocks.current.graphics", CellMeaning::frequency, "MHz"},
};

// Columns of dmon. "mem" is the load of the memory bus, "fb" the memory in use.
constexpr KnownColumn k_dmon_columns[] = {
    {"Date", CellMeaning::date},
    {"Time", CellMeaning::clock},
    {"gpu", CellMeaning::device},
    {"pwr", CellMeaning::power, "W"},
    {"gtemp", CellMeaning::temperature, "C"},
    {"temp", CellMeaning::temperature, "C"},
    {"sm", CellMeaning::utilisation, "%"},
    {"fb", CellMeaning::memory_used, "MB"},
    {"pclk", CellMeaning::frequency, "MHz"},
    {"pviol", CellMeaning::power_throttling, "%"},
    {"tviol", CellMeaning::thermal_active},
};

bool is_query_csv(std::string_view head) {
  // "timestamp, name" alone could be anything; the dotted names are nvidia-smi's own.
  for (const std::string_view mark : {"power.draw", "utilization.gpu", "memory.used", "temperature.gpu", "clocks."})
    if (holds(head, mark)) return has_header(head, csv_form(k_query_columns));
  return false;
}

void read_query_csv(std::string_view text, std::string_view, TelemetryRows& rows) {
  read_table(text, csv_form(k_query_columns), rows);
  rows.times_are_local();
}

std::vector<std::string_view> split_dmon(std::string_view line) {
  return holds(line, ",") ? split_csv(line) : split_words(line);  // --format csv
}

// The names in "# gpu   pwr" or "#Date Time gpu"; empty for any other line, that of the units among them.
std::vector<std::string_view> dmon_header(std::string_view line, std::span<const KnownColumn>) {
  line = trim_blanks(line);
  if (!line.starts_with('#')) return {};
  auto names = split_dmon(line.substr(1));
  const bool names_gpu = std::find(names.begin(), names.end(), "gpu") != names.end();
  return names_gpu ? names : std::vector<std::string_view>{};
}

std::vector<std::string_view> dmon_cells(std::string_view line) {
  line = trim_blanks(line);
  return line.starts_with('#') ? std::vector<std::string_view>{} : split_dmon(line);
}

constexpr TableForm k_dmon{k_dmon_columns, dmon_header, dmon_cells};

bool is_dmon(std::string_view head) { return has_header(head, k_dmon); }

void read_dmon(std::string_view text, std::string_view, TelemetryRows& rows) {
  read_table(text, k_dmon, rows);
  rows.times_are_local();
}

// Rows of --format=csv,noheader: the same number of cells in every line, the first of which is not a header.
struct BareTable {
  size_t rows = 0, columns = 0;
};
BareTable bare_table(std::string_view text) {
  BareTable table;
  for (std::string_view line; next_line(text, line);) {
    if (trim_blanks(line).empty()) continue;
    const auto cells = split_csv(line);
    const bool has_figure = std::any_of(cells.begin(), cells.end(), [](auto cell) { return parse_quantity(cell); });
    const bool fits = table.rows == 0 ? cells.size() >= 2 && has_figure : cells.size() == table.columns;
    if (!fits) return {};
    table = {table.rows + 1, cells.size()};
  }
  return table;
}

bool is_bare_csv(std::string_view head) {
  const size_t last_line = head.rfind('\n');
  return bare_table(head.substr(0, last_line)).rows > 0;
}

void refuse_bare_csv(std::string_view text, std::string_view where, TelemetryRows&) {
  const BareTable table = bare_table(text);
  const std::string size = table.rows > 0 ? fmt::format("{} rows of {} columns", table.rows, table.columns) : "rows";
  throw Error(Problem{fmt::format("holds {} without a header, so the meaning of its columns is unknown", size),
                      std::string(where),
                      "keep the header: nvidia-smi --query-gpu=... --format=csv, without noheader"});
}

constexpr TelemetryFormat k_nvidia_smi_formats[] = {
    {"nvidia-smi csv", is_query_csv, read_query_csv},
    {"nvidia-smi dmon", is_dmon, read_dmon},
};
constexpr TelemetryFormat k_bare_formats[] = {{"csv without a header", is_bare_csv, refuse_bare_csv}};

}  // namespace

std::span<const TelemetryFormat> nvidia_smi_formats() { return k_nvidia_smi_formats; }
std::span<const TelemetryFormat> bare_formats() { return k_bare_formats; }

}  // namespace tprimat
