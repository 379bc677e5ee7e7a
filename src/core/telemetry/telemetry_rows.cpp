#include "telemetry/telemetry_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "telemetry/gpu_library.h"

namespace tprimat {
namespace {

// No tool polls a device more often than this, so rows that are closer belong to different devices.
constexpr double k_shortest_interval_seconds = 0.008;

bool is_word_for_unknown(std::string_view cell) {
  return cell.empty() || cell == "-" || cell == "N/A" || cell.front() == '[';
}

}  // namespace

void TelemetryRow::set(const KnownColumn& column, std::string_view cell, std::string_view unit) {
  if (is_word_for_unknown(cell)) return;
  switch (column.meaning) {
    case CellMeaning::time:
    case CellMeaning::date:
    case CellMeaning::clock: return set_time(column.meaning, cell);
    case CellMeaning::device:
    case CellMeaning::partition:
    case CellMeaning::name: return set_text(column.meaning, cell);
    case CellMeaning::memory_pair: return set_memory_pair(cell, column.unit);
    default: break;
  }
  if (column.meaning == CellMeaning::thermal_active) {
    facts_.thermal_throttling_seen = cell == "True" || cell == "1";
    has_figure_ = true;
    return;
  }
  const auto quantity = parse_quantity(cell);
  if (!quantity) return;
  if (const auto value = to_base_unit(*quantity, unit.empty() ? column.unit : unit)) set_figure(column.meaning, *value);
}

void TelemetryRow::set_memory_pair(std::string_view cell, std::string_view unit) {
  const size_t slash = std::min(cell.find('/'), cell.size());
  const auto used = parse_quantity(cell.substr(0, slash));
  const auto total = parse_quantity(cell.substr(std::min(slash + 1, cell.size())));
  if (!total || !used) return;
  if (const auto bytes = to_base_unit(*total, unit)) set_figure(CellMeaning::memory_total, *bytes);
  if (const auto bytes = to_base_unit({used->value, total->unit}, unit)) set_figure(CellMeaning::memory_used, *bytes);
}

void TelemetryRow::set_time(CellMeaning meaning, std::string_view cell) {
  std::optional<double>& place = meaning == CellMeaning::time   ? time_
                                 : meaning == CellMeaning::date ? day_
                                                                : second_of_day_;
  if (place) return;
  place = meaning == CellMeaning::time   ? parse_time(cell)
          : meaning == CellMeaning::date ? parse_day(cell)
                                         : parse_second_of_day(cell);
}

void TelemetryRow::set_text(CellMeaning meaning, std::string_view cell) {
  if (meaning == CellMeaning::device && cell.starts_with("card")) cell.remove_prefix(4);
  if (meaning == CellMeaning::device && device_.empty()) device_ = cell;
  if (meaning == CellMeaning::partition && partition_.empty()) partition_ = cell;
  if (meaning == CellMeaning::name && !facts_.name) facts_.name = std::string(cell);
}

void TelemetryRow::set_figure(CellMeaning meaning, double value) {
  const auto place = [&]() -> std::optional<double>* {
    switch (meaning) {
      case CellMeaning::power: return &reading_.power_watts;
      case CellMeaning::energy: return &reading_.energy_joules;
      case CellMeaning::utilisation: return &reading_.utilisation;
      case CellMeaning::memory_used: return &reading_.memory_used_bytes;
      case CellMeaning::temperature: return &reading_.temperature_celsius;
      case CellMeaning::frequency: return &reading_.clock_hz;
      case CellMeaning::memory_total: return &facts_.memory_total_bytes;
      case CellMeaning::memory_fraction: return &facts_.peak_memory_fraction;
      case CellMeaning::power_throttling: return &facts_.peak_power_throttling;
      case CellMeaning::thermal_throttling: return &facts_.peak_thermal_throttling;
      default: return nullptr;
    }
  }();
  if (place == nullptr || *place) return;
  *place = value;
  has_figure_ = true;
}

namespace {

void merge(const TelemetryDevice& row, TelemetryDevice& device) {
  if (row.name) device.name = row.name;
  if (row.memory_total_bytes) device.memory_total_bytes = row.memory_total_bytes;
  device.peak_memory_fraction = std::max(device.peak_memory_fraction, row.peak_memory_fraction);
  device.peak_power_throttling = std::max(device.peak_power_throttling, row.peak_power_throttling);
  device.peak_thermal_throttling = std::max(device.peak_thermal_throttling, row.peak_thermal_throttling);
  device.thermal_throttling_seen = std::max(device.thermal_throttling_seen, row.thermal_throttling_seen);
}

}  // namespace

std::string TelemetryRows::source_of(const TelemetryRow& row) const {
  if (row.device_.empty()) return tool_;
  const bool whole = row.partition_.empty() || row.partition_ == "0";
  return fmt::format("{}:{}{}{}", tool_, row.device_, whole ? "" : ".", whole ? "" : row.partition_);
}

void TelemetryRows::add(const TelemetryRow& row) {
  if (!row.has_figure_) return;
  const std::string source = source_of(row);
  Device& device = devices_[source];
  device.facts.source = source;
  merge(row.facts_, device.facts);
  std::optional<double> time = row.time_;
  if (!time && row.day_ && row.second_of_day_) time = *row.day_ + *row.second_of_day_;
  ++(time ? timed_ : untimed_);
  device.readings.push_back(row.reading_);
  device.readings.back().unix_time = time.value_or(0.0);
}

void TelemetryRows::skip_line(size_t line) {
  if (skipped_++ == 0) first_skipped_ = line;
}

void TelemetryRows::note(std::string sentence) {
  if (std::find(notes_.begin(), notes_.end(), sentence) == notes_.end()) notes_.push_back(std::move(sentence));
}

void TelemetryRows::tell_what_is_missing() {
  if (timed_ > 0 && times_are_local_)
    note("the time stamps are the machine's local time without a zone, and are read as UTC");
  if (timed_ == 0)
    note("the readings have no time stamps, so they cannot be matched to steps");
  else if (untimed_ > 0)
    note(fmt::format("{} of {} rows have no time stamp and are ignored", untimed_, timed_ + untimed_));
  if (skipped_ > 0)
    note(fmt::format("{} lines do not fit the table and are ignored, the first is line {}", skipped_, first_skipped_));
}

namespace {

// "nvidia-smi:10" comes after "nvidia-smi:9".
bool comes_before(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool has_rows_of_several_devices(const std::vector<Reading>& readings) {
  for (size_t i = 1; i < readings.size(); ++i)
    if (std::fabs(readings[i].unix_time - readings[i - 1].unix_time) < k_shortest_interval_seconds) return true;
  return false;
}

}  // namespace

SensorTrace TelemetryRows::take_trace(const TelemetryDevice& facts, bool timed, const std::string& place) {
  std::vector<Reading>& readings = devices_[facts.source].readings;
  if (timed) std::erase_if(readings, [](const Reading& reading) { return reading.unix_time == 0.0; });
  if (facts.source == tool_ && timed && has_rows_of_several_devices(readings))
    throw Error(Problem{"holds rows of several devices, but no column that names the device", place,
                        "record it again with the column 'index'"});
  if (facts.source == tool_) note("the rows do not name their device and are taken as those of one device");
  std::stable_sort(readings.begin(), readings.end(),
                   [](const Reading& a, const Reading& b) { return a.unix_time < b.unix_time; });
  FaultLog faults;
  GpuFacts device;
  device.memory_bytes = facts.memory_total_bytes;
  for (Reading& reading : readings) {
    faults.count_reading();
    drop_implausible(reading, device, faults);
  }
  return {facts.source, std::move(readings), faults.notes()};
}

TelemetryFile TelemetryRows::finish(std::string_view format, std::string_view where) {
  const std::string place(where);
  if (devices_.empty())
    throw Error(
        Problem{fmt::format("is {}, but holds no reading of power, memory, utilisation, temperature or clock", format),
                place, ""});
  tell_what_is_missing();
  TelemetryFile file{std::string(format), timed_ > 0, {}, {}, {}};
  for (auto& [source, device] : devices_) file.devices.push_back(device.facts);
  std::sort(file.devices.begin(), file.devices.end(),
            [](const auto& a, const auto& b) { return comes_before(a.source, b.source); });
  for (const TelemetryDevice& facts : file.devices) file.traces.push_back(take_trace(facts, file.timed, place));
  file.notes = std::move(notes_);
  return file;
}

const KnownColumn* find_column(std::span<const KnownColumn> vocabulary, std::string_view name) {
  for (const KnownColumn& column : vocabulary)
    if (column.name == name) return &column;
  return nullptr;
}

std::vector<HeaderColumn> match_header(std::span<const KnownColumn> vocabulary,
                                       const std::vector<std::string_view>& names) {
  std::vector<HeaderColumn> matched;
  for (const KnownColumn& column : vocabulary)
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t bracket = names[i].find(" [");  // "power.draw [W]"
      if (names[i].substr(0, bracket) != column.name) continue;
      std::string_view unit = bracket == std::string_view::npos ? "" : names[i].substr(bracket + 2);
      if (!unit.empty() && unit.back() == ']') unit.remove_suffix(1);
      matched.push_back({&column, i, unit});
    }
  return matched;
}

void read_table(std::string_view text, const TableForm& form, TelemetryRows& rows) {
  std::vector<HeaderColumn> columns;
  size_t width = 0, number = 0;
  for (std::string_view line; next_line(text, line);) {
    ++number;
    if (const auto names = form.header(line, form.vocabulary); !names.empty()) {
      columns = match_header(form.vocabulary, names);
      width = names.size();
      continue;
    }
    if (columns.empty()) continue;  // a banner
    const auto cells = form.cells(line);
    if (!cells.empty() && cells.size() != width) rows.skip_line(number);
    if (cells.size() != width) continue;
    TelemetryRow row;
    for (const HeaderColumn& each : columns) row.set(*each.column, cells[each.at], each.unit);
    rows.add(row);
  }
}

bool has_header(std::string_view head, const TableForm& form) {
  for (std::string_view line; next_line(head, line);)
    if (match_header(form.vocabulary, form.header(line, form.vocabulary)).size() >= 2) return true;
  return false;
}

TableForm csv_form(std::span<const KnownColumn> vocabulary) {
  const auto cells = [](std::string_view line) {
    return trim_blanks(line).empty() ? TableForm::Cells{} : split_csv(line);
  };
  const auto header = [](std::string_view line, std::span<const KnownColumn> known) {
    TableForm::Cells names = split_csv(line);
    return match_header(known, names).size() >= 2 ? names : TableForm::Cells{};
  };
  return {vocabulary, header, cells};
}

}  // namespace tprimat
