#include "text/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace tprimat {
namespace {

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string pad(std::string_view cell, size_t width, bool right) {
  const size_t length = code_points(cell);
  const std::string blanks(width > length ? width - length : 0, ' ');
  return right ? blanks + std::string(cell) : std::string(cell) + blanks;
}

std::vector<size_t> column_widths(const TextTable& table) {
  std::vector<size_t> widths;
  const auto widen = [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], code_points(row[i]));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  return widths;
}

bool is_right(const TextTable& table, size_t column) {
  return std::find(table.right.begin(), table.right.end(), column) != table.right.end();
}

std::string group_thousands(std::string digits) {
  for (int at = static_cast<int>(digits.size()) - 3; at > (digits[0] == '-' ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value)) return fmt::format("unknown {}", unit);
  static constexpr std::string_view k_prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t step = 0;
  while (std::fabs(value) >= 999.5 && step + 1 < std::size(k_prefixes)) value /= 1000, ++step;
  return fmt::format("{} {}{}", format_significant(value, 3), k_prefixes[step], unit);
}

std::string format_gb(double bytes) { return fmt::format("{:.2f} GB", bytes / 1e9); }

std::string format_memory(double bytes) {
  return bytes < 0.9995e9 ? fmt::format("{:.1f} MB", bytes / 1e6) : format_gb(bytes);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "unknown";
  if (seconds < 0) return "-" + format_duration(-seconds);
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{} s", format_significant(seconds, 4));
  constexpr double k_century = 3.2e9;
  if (seconds > k_century) return fmt::format("{} s", format_significant(seconds, 2));
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_percent(double fraction, int decimals) { return fmt::format("{:.{}f} %", fraction * 100, decimals); }

std::string format_count(double value) {
  if (!std::isfinite(value)) return "unknown";
  if (std::fabs(value) < 100) return format_significant(value, 3);
  return group_thousands(fmt::format("{:.0f}", value));
}

std::string format_significant(double value, int digits) {
  if (value == 0) return "0";
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value) || magnitude < 1e-4 || magnitude >= 1e7) return fmt::format("{:.{}e}", value, digits - 1);
  const auto digits_before_point = [](double x) { return static_cast<int>(std::floor(std::log10(x))) + 1; };
  const double unit = std::pow(10.0, digits_before_point(magnitude) - digits);
  const int before_point = digits_before_point(std::round(magnitude / unit) * unit);  // 9.996 rounds up to 10.0
  return fmt::format("{:.{}f}", value, std::max(0, digits - before_point));
}

std::string disarm_formula(std::string cell) {
  if (!cell.empty() && std::string_view("=+-@\t\r").find(cell.front()) != std::string_view::npos)
    cell.insert(0, 1, '\'');
  return cell;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_c1 = byte >= 0x80 && byte < 0xa0 && !out.empty() && out.back() == '\xc2';  // U+0080 to U+009F
    if (is_c1) out.pop_back();
    out += byte < 0x20 || byte == 0x7f || is_c1 ? ' ' : c;
  }
  return out;
}

std::string quote_shell(std::string_view word) {
  constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(k_plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string render_text(const TextTable& table) {
  const std::vector<size_t> widths = column_widths(table);
  std::string out;
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i > 0 ? "  " : "") + pad(row[i], widths[i], is_right(table, i));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  if (!table.header.empty()) print_row(table.header);
  for (const auto& row : table.rows) print_row(row);
  return out;
}

std::string render_markdown(const TextTable& table) {
  std::string out;
  const auto print_row = [&](const std::vector<std::string>& row) {
    out += '|';
    for (const std::string& cell : row) {
      std::string escaped;
      for (const char c : cell)
        escaped += c == '|' ? std::string("\\|") : c == '\n' ? std::string("<br>") : std::string(1, c);
      out += ' ' + escaped + " |";
    }
    out += '\n';
  };
  print_row(table.header);
  out += '|';
  for (size_t i = 0; i < table.header.size(); ++i) out += is_right(table, i) ? "---:|" : "---|";
  out += '\n';
  for (const auto& row : table.rows) print_row(row);
  return out;
}

}  // namespace tprimat
