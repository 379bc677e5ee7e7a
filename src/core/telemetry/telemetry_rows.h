#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/telemetry_cells.h"
#include "telemetry/telemetry_file.h"

// Reads the files of all monitoring tools as rows of named cells.
namespace tprimat {

enum class CellMeaning {
  time,    // date and time of day, or seconds since 1970
  date,    // alone
  clock,   // time of day alone
  device,  // number of the device, else another identifier
  partition,
  name,
  power,
  energy,
  utilisation,
  memory_used,
  memory_total,
  memory_pair,  // "0.3/ 192.0 GB": used and total
  memory_fraction,
  temperature,
  frequency,
  power_throttling,
  thermal_throttling,
  thermal_active,  // "True" or "1"
};

// One line of a tool's vocabulary. Of several names with the same meaning the first with a usable cell counts.
struct KnownColumn {
  std::string_view name;
  CellMeaning meaning;
  std::string_view unit = "";  // of a cell that names none. All three tools mean 2^20 and 2^30 bytes by MB and GB
};

// A file format and its reader. `fits` looks at the first 64 KiB.
class TelemetryRows;
struct TelemetryFormat {
  std::string_view name;
  bool (*fits)(std::string_view head);
  void (*read)(std::string_view text, std::string_view where, TelemetryRows& rows);
};
std::span<const TelemetryFormat> nvidia_smi_formats();
std::span<const TelemetryFormat> rocm_smi_formats();
std::span<const TelemetryFormat> amd_smi_formats();
std::span<const TelemetryFormat> bare_formats();  // tables that do not name their columns; reading them throws

// The row that is being read.
class TelemetryRow {
 public:
  void set(const KnownColumn& column, std::string_view cell, std::string_view unit = "");  // unit: of the header

 private:
  friend class TelemetryRows;
  void set_time(CellMeaning meaning, std::string_view cell);
  void set_text(CellMeaning meaning, std::string_view cell);
  void set_memory_pair(std::string_view cell, std::string_view unit);
  void set_figure(CellMeaning meaning, double value);

  Reading reading_;
  std::optional<double> time_, day_, second_of_day_;
  std::string device_, partition_;
  TelemetryDevice facts_;  // as far as this row states them
  bool has_figure_ = false;
};

// Collects rows into one trace per device.
class TelemetryRows {
 public:
  explicit TelemetryRows(std::string_view tool) : tool_(tool) {}
  void add(const TelemetryRow& row);
  void skip_line(size_t line);  // it does not fit the table; counted and reported
  void note(std::string sentence);
  void times_are_local() { times_are_local_ = true; }  // the tool prints them without their zone

  // Throws Error when there is no reading at all, or when rows of several devices cannot be distinguished.
  TelemetryFile finish(std::string_view format, std::string_view where);

 private:
  struct Device {
    TelemetryDevice facts;
    std::vector<Reading> readings;
  };
  std::string source_of(const TelemetryRow& row) const;
  void tell_what_is_missing();
  SensorTrace take_trace(const TelemetryDevice& facts, bool timed, const std::string& place);

  std::string tool_;
  std::map<std::string, Device> devices_;
  std::vector<std::string> notes_;
  size_t timed_ = 0, untimed_ = 0, skipped_ = 0, first_skipped_ = 0;
  bool times_are_local_ = false;
};

const KnownColumn* find_column(std::span<const KnownColumn> vocabulary, std::string_view name);

// The columns of one header, in the order of the vocabulary, so that better sources come first.
struct HeaderColumn {
  const KnownColumn* column = nullptr;
  size_t at = 0;          // index of the cell
  std::string_view unit;  // from the header
};
std::vector<HeaderColumn> match_header(std::span<const KnownColumn> vocabulary,
                                       const std::vector<std::string_view>& names);

// How the lines of a table are split.
struct TableForm {
  using Cells = std::vector<std::string_view>;
  std::span<const KnownColumn> vocabulary;
  Cells (*header)(std::string_view line, std::span<const KnownColumn> vocabulary);  // its names; empty: no header
  Cells (*cells)(std::string_view line);                                            // empty: no row
};

// A header (which may come again), then one row per line.
void read_table(std::string_view text, const TableForm& form, TelemetryRows& rows);
bool has_header(std::string_view head, const TableForm& form);  // in one of the lines

TableForm csv_form(std::span<const KnownColumn> vocabulary);  // comma-separated cells

}  // namespace tprimat
