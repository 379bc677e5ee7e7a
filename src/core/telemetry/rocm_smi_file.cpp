#include <algorithm>

#include "telemetry/telemetry_cells.h"
#include "telemetry/telemetry_rows.h"

namespace tprimat {
namespace {

// Keys of --json and --csv, and of the listing that single options print. The power key of a card depends on its
// firmware.
constexpr KnownColumn k_keys[] = {
    {"device", CellMeaning::device},
    {"Device", CellMeaning::device},
    {"GPU", CellMeaning::device},
    {"Card Series", CellMeaning::name},
    {"Card series", CellMeaning::name},
    {"Device Name", CellMeaning::name},
    {"Current Socket Graphics Package Power (W)", CellMeaning::power, "W"},
    {"Average Graphics Package Power (W)", CellMeaning::power, "W"},
    {"Accumulated Energy (uJ)", CellMeaning::energy, "uJ"},
    {"GPU use (%)", CellMeaning::utilisation, "%"},
    {"VRAM Total Used Memory (B)", CellMeaning::memory_used, "B"},
    {"VRAM Total Memory (B)", CellMeaning::memory_total, "B"},
    {"GPU Memory Allocated (VRAM%)", CellMeaning::memory_fraction, "%"},
    {"GPU memory use (%)", CellMeaning::memory_fraction, "%"},
    {"Temperature (Sensor junction) (C)", CellMeaning::temperature, "C"},
    {"Temperature (Sensor edge) (C)", CellMeaning::temperature, "C"},
    {"sclk clock speed:", CellMeaning::frequency, "MHz"},
};

void read_card(std::string_view card, const Json& facts, TelemetryRows& rows) {
  TelemetryRow row;
  row.set(k_keys[0], card);
  for (const KnownColumn& key : k_keys) {
    if (const Json* found = facts.find(key.name)) row.set(key, print_json_bare(*found));
  }
  rows.add(row);
}

bool is_rocm_smi_json(std::string_view head) {
  return holds(head, "{") && holds(head, "\"card") &&
         (holds(head, "(W)\"") || holds(head, "(B)\"") || holds(head, "%)\""));
}

void read_rocm_smi_json(std::string_view text, std::string_view where, TelemetryRows& rows) {
  const bool whole = for_each_json_document(text, where, [&](const Json& document) {
    if (!document.is_object()) return;
    for (const auto& [card, facts] : document.items())
      if (card.starts_with("card") && facts.is_object()) read_card(card, facts, rows);
  });
  if (!whole) rows.note("the last JSON document is truncated and ignored");
}

bool is_rocm_smi_csv(std::string_view head) { return has_header(head, csv_form(k_keys)) && holds(head, "card"); }

void read_cards_csv(std::string_view text, std::string_view, TelemetryRows& rows) {
  read_table(text, csv_form(k_keys), rows);
}

// "GPU[3]		: Average Graphics Package Power (W): 173.0"
struct Listed {
  std::string_view device, key, value;
};
std::optional<Listed> parse_listed(std::string_view line) {
  if (!line.starts_with("GPU[")) return std::nullopt;
  const size_t bracket = line.find(']'), colon = line.find(':');
  const size_t last = line.rfind(": ");
  if (bracket == std::string_view::npos || colon == std::string_view::npos || last == std::string_view::npos ||
      bracket > colon || last <= colon)
    return std::nullopt;
  return Listed{line.substr(4, bracket - 4), trim_blanks(line.substr(colon + 1, last - colon - 1)),
                trim_blanks(line.substr(last + 2))};
}

const KnownColumn* find_listed(std::string_view line) {
  const auto listed = parse_listed(line);
  return listed ? find_column(k_keys, listed->key) : nullptr;
}

bool is_listing(std::string_view head) {
  for (std::string_view line; next_line(head, line);)
    if (find_listed(line) != nullptr) return true;
  return false;
}

// The options print one section each, so a device's figures are collected until one of them repeats.
void read_listing(std::string_view text, std::string_view, TelemetryRows& rows) {
  struct Open {
    TelemetryRow row;
    std::vector<const KnownColumn*> keys;
  };
  std::map<std::string, Open, std::less<>> open;
  for (std::string_view line; next_line(text, line);) {
    const KnownColumn* key = find_listed(line);
    if (key == nullptr) continue;
    const Listed listed = *parse_listed(line);
    Open& device = open[std::string(listed.device)];
    if (std::find(device.keys.begin(), device.keys.end(), key) != device.keys.end()) {
      rows.add(device.row);
      device = {};
    }
    if (device.keys.empty()) device.row.set(k_keys[0], listed.device);
    device.keys.push_back(key);
    device.row.set(*key, listed.value);
  }
  for (const auto& [number, device] : open) rows.add(device.row);
}

// Columns of the concise table that is printed without options. A cell begins below its header's first letter or, for
// percentages, a few letters further; the device's name stands alone in a second line.
constexpr KnownColumn k_rocm_smi_table_columns[] = {
    {"Device", CellMeaning::device},         {"GPU", CellMeaning::device},
    {"Temp", CellMeaning::temperature, "C"}, {"Power", CellMeaning::power, "W"},
    {"AvgPwr", CellMeaning::power, "W"},     {"SCLK", CellMeaning::frequency, "MHz"},
    {"VRAM%", CellMeaning::memory_fraction}, {"GPU%", CellMeaning::utilisation},
};

// A word and the code point at which it begins: a degree sign takes two bytes and one column.
struct PlacedWord {
  std::string_view word;
  size_t column = 0;
};
std::vector<PlacedWord> place_words(std::string_view line) {
  std::vector<PlacedWord> words;
  size_t column = 0, begin = 0, begin_column = 0;
  bool inside = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    const bool blank = i == line.size() || line[i] == ' ' || line[i] == '\t';
    if (inside && blank) words.push_back({line.substr(begin, i - begin), begin_column});
    if (!inside && !blank) begin = i, begin_column = column;
    inside = !blank;
    if (i < line.size() && (line[i] & 0xC0) != 0x80) ++column;
  }
  return words;
}

struct TableColumn {
  const KnownColumn* known;  // null: unknown, but it ends the one before
  size_t begin = 0, end = 0;
};

std::vector<TableColumn> table_header(std::string_view line) {
  std::vector<TableColumn> columns;
  for (const PlacedWord& each : place_words(line)) {
    if (!columns.empty()) columns.back().end = each.column;
    columns.push_back({find_column(k_rocm_smi_table_columns, each.word), each.column, std::string_view::npos});
  }
  const auto known =
      std::count_if(columns.begin(), columns.end(), [](const auto& each) { return each.known != nullptr; });
  const bool begins_with_device = !columns.empty() && columns[0].known != nullptr && columns[0].begin == 0 &&
                                  columns[0].known->meaning == CellMeaning::device;
  return begins_with_device && known >= 3 ? columns : std::vector<TableColumn>{};
}

bool is_rocm_smi_table(std::string_view head) {
  for (std::string_view line; next_line(head, line);)
    if (!table_header(line).empty()) return true;
  return false;
}

// Only cells that show the unit of their column: a misaligned table must not yield figures of another column.
bool shows_its_unit(CellMeaning meaning, std::string_view cell) {
  switch (meaning) {
    case CellMeaning::device: return is_all_digits(cell);
    case CellMeaning::temperature: return cell.ends_with("C") || cell.ends_with("c");
    case CellMeaning::power: return cell.ends_with("W");
    case CellMeaning::frequency: return cell.ends_with("hz");
    default: return cell.ends_with("%");
  }
}

// Nothing for a row that leaves one of our columns empty: it is misaligned, and its figures may belong to another
// column.
std::optional<TelemetryRow> read_table_row(const std::vector<TableColumn>& columns,
                                           const std::vector<PlacedWord>& words) {
  TelemetryRow row;
  for (const TableColumn& column : columns) {
    if (column.known == nullptr) continue;
    bool filled = false;
    for (const PlacedWord& each : words) {
      if (each.column < column.begin || each.column >= column.end) continue;
      filled = true;
      if (shows_its_unit(column.known->meaning, each.word)) row.set(*column.known, each.word);
    }
    if (!filled) return std::nullopt;
  }
  return row;
}

void read_rocm_smi_table(std::string_view text, std::string_view, TelemetryRows& rows) {
  constexpr KnownColumn k_name_line{"", CellMeaning::name};
  std::vector<TableColumn> columns;
  std::optional<TelemetryRow> row;
  size_t number = 0;
  const auto end_row = [&] {
    if (row) rows.add(*row);
    row.reset();
  };
  for (std::string_view line; next_line(text, line);) {
    ++number;
    const auto words = place_words(line);
    if (auto header = table_header(line); !header.empty()) {
      end_row();
      columns = std::move(header);
    } else if (!columns.empty() && !words.empty() && words[0].column == 0) {
      end_row();
      if (!shows_its_unit(CellMeaning::device, words[0].word)) continue;
      row = read_table_row(columns, words);
      if (!row) rows.skip_line(number);
    } else if (row && !words.empty()) {
      row->set(k_name_line, trim_blanks(line));
    }
  }
  end_row();
}

constexpr TelemetryFormat k_rocm_smi_formats[] = {
    {"rocm-smi json", is_rocm_smi_json, read_rocm_smi_json},
    {"rocm-smi csv", is_rocm_smi_csv, read_cards_csv},
    {"rocm-smi listing", is_listing, read_listing},
    {"rocm-smi table", is_rocm_smi_table, read_rocm_smi_table},
};

}  // namespace

std::span<const TelemetryFormat> rocm_smi_formats() { return k_rocm_smi_formats; }

}  // namespace tprimat
