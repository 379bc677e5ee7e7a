#include "telemetry/telemetry_cells.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace tprimat {
namespace {

constexpr double k_mib = 1048576.0;

struct UnitScale {
  std::string_view unit;
  double scale;
};
constexpr UnitScale k_scales[] = {
    {"W", 1.0},     {"mW", 1e-3},         {"kW", 1e3},           {"J", 1.0},
    {"mJ", 1e-3},   {"uJ", 1e-6},         {"%", 0.01},           {"C", 1.0},
    {"c", 1.0},     {"\u00b0C", 1.0},     {"Hz", 1.0},           {"KHz", 1e3},
    {"kHz", 1e3},   {"MHz", 1e6},         {"Mhz", 1e6},          {"GHz", 1e9},
    {"B", 1.0},     {"KB", 1024.0},       {"KiB", 1024.0},       {"MB", k_mib},
    {"MiB", k_mib}, {"GB", k_mib * 1024}, {"GiB", k_mib * 1024},
};

std::optional<double> scale_of(std::string_view unit) {
  for (const UnitScale& each : k_scales)
    if (each.unit == unit) return each.scale;
  return std::nullopt;
}

// Reads a whole number of exactly `digits` digits and cuts it off.
std::optional<int> take_digits(std::string_view& text, size_t digits) {
  const auto value = parse_number<int>(text.substr(0, digits));
  if (text.size() < digits || !value || *value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool take_one_of(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// "2026/09/12", "2026-09-12" or "20260912", as seconds since 1970.
std::optional<double> take_day(std::string_view& text) {
  const auto year = take_digits(text, 4);
  if (!year) return std::nullopt;
  take_one_of(text, "/-");
  const auto month = take_digits(text, 2);
  take_one_of(text, "/-");
  const auto day = take_digits(text, 2);
  if (!month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *year < 1970) return std::nullopt;
  return 86400.0 * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
}

std::optional<double> parse_unix_seconds(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && *value > 1e8 && *value < 1e11 ? value : std::nullopt;  // 1973 to 5138
}

// Where the bracket that opens `text` is closed, just behind it; npos when it is not.
size_t end_of_document(std::string_view text) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!in_string && (c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// The next bracket that begins a line and is not that of a word such as "[WARNING]"; npos when there is none.
size_t find_document(std::string_view text) {
  bool line_begins = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\t' || text[i] == '\r';
    const bool opens = text[i] == '{' || text[i] == '[';
    const bool word = i + 1 < text.size() && text[i + 1] >= 'A' && text[i + 1] <= 'Z';
    if (line_begins && opens && !word) return i;
    line_begins = text[i] == '\n' || text[i] == ']' || text[i] == '}' || (line_begins && blank);
  }
  return std::string_view::npos;
}

}  // namespace

bool next_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trim_blanks(line)).empty()) {
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::vector<std::string_view> split_csv(std::string_view line) {
  std::vector<std::string_view> cells;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != ',')) continue;
    std::string_view cell = trim_blanks(line.substr(begin, i - begin));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    begin = i + 1;
  }
  return cells;
}

std::optional<double> parse_second_of_day(std::string_view text) {
  const auto hours = take_digits(text, 2);
  const bool first = take_one_of(text, ":");
  const auto minutes = take_digits(text, 2);
  const bool second = take_one_of(text, ":");
  const auto seconds = take_digits(text, 2);
  if (!hours || !minutes || !seconds || !first || !second || *hours > 23 || *minutes > 59 || *seconds > 60)
    return std::nullopt;
  const auto fraction = text.empty() ? 0.0 : parse_number<double>(text);
  if (!fraction || (!text.empty() && text.front() != '.')) return std::nullopt;
  return *hours * 3600.0 + *minutes * 60.0 + *seconds + *fraction;
}

std::optional<double> parse_day(std::string_view text) {
  const auto day = take_day(text);
  return text.empty() ? day : std::nullopt;
}

std::optional<double> parse_time(std::string_view text) {
  if (const auto seconds = parse_unix_seconds(text)) return seconds;
  const auto day = take_day(text);
  if (!day || !take_one_of(text, " T")) return std::nullopt;
  const auto second = parse_second_of_day(trim_blanks(text));
  if (!second) return std::nullopt;
  return *day + *second;
}

std::optional<Quantity> parse_quantity(std::string_view cell) {
  cell = trim_blanks(cell);
  if (!cell.empty() && cell.front() == '(' && cell.back() == ')') cell = cell.substr(1, cell.size() - 2);
  Quantity quantity;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), quantity.value);
  if (error != std::errc() || !std::isfinite(quantity.value)) return std::nullopt;
  quantity.unit = trim_blanks(cell.substr(static_cast<size_t>(end - cell.data())));
  return quantity;
}

std::optional<double> to_base_unit(const Quantity& quantity, std::string_view unit_if_none) {
  const auto scale = scale_of(quantity.unit.empty() ? unit_if_none : quantity.unit);
  if (!scale || quantity.value < 0.0) return std::nullopt;
  return quantity.value * *scale;
}

bool for_each_json_document(std::string_view text, std::string_view where,
                            const std::function<void(const Json&)>& use) {
  bool first = true;
  for (size_t begin; (begin = find_document(text)) != std::string_view::npos; first = false) {
    text.remove_prefix(begin);
    const size_t end = end_of_document(text);
    try {
      use(parse_json(text.substr(0, end), where));
    } catch (const Error&) {
      if (first) throw;
      return false;
    }
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end);
  }
  return true;
}

}  // namespace tprimat
