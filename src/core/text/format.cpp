#include "text/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tprimat {
namespace {

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

template <class Word>
std::string join_words(std::span<const Word> words, std::string_view between) {
  std::string text;
  for (const Word& word : words) {
    if (&word != words.data()) text += between;
    text += word;
  }
  return text;
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

// Closes the single quotes around it.
std::string print_in_shell(std::string_view bytes) {
  std::string text = "'\"$(printf '";
  for (const char c : bytes) text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  return text + "')\"'";
}

TextTable printable_cells(TextTable table, std::string_view kept = "") {
  for (std::string& cell : table.header) cell = printable(cell, kept);
  for (auto& row : table.rows)
    for (std::string& cell : row) cell = printable(cell, kept);
  return table;
}

}  // namespace

std::string join(std::span<const std::string> words, std::string_view between) { return join_words(words, between); }
std::string join(std::span<const std::string_view> words, std::string_view between) {
  return join_words(words, between);
}

std::string format_si(double value, std::string_view unit) {
  if (!std::isfinite(value)) return fmt::format("unknown {}", unit);
  static constexpr std::string_view k_prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t step = 0;
  while (std::fabs(value) >= 999.5 && step + 1 < std::size(k_prefixes)) value /= 1000, ++step;
  return fmt::format("{} {}{}", format_significant(value, 3), k_prefixes[step], unit);
}

// A figure of 309 digits is useless and fills the screen.
std::string format_fixed(double value, int decimals) {
  constexpr double k_max_plain = 1e15;
  return std::isfinite(value) && std::fabs(value) >= k_max_plain ? fmt::format("{:.2e}", value)
                                                                 : fmt::format("{:.{}f}", value, decimals);
}

std::string format_gb(double bytes) { return format_fixed(bytes / 1e9, 2) + " GB"; }

std::string format_memory(double bytes) {
  return bytes < 0.9995e9 ? format_fixed(bytes / 1e6, 1) + " MB" : format_gb(bytes);
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

std::string group_thousands(std::string digits) {
  for (int at = static_cast<int>(digits.size()) - 3; at > (digits[0] == '-' ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

std::string format_percent(double fraction, int decimals) { return format_fixed(fraction * 100, decimals) + " %"; }

std::string format_count(double value) {
  if (!std::isfinite(value)) return "unknown";
  if (std::fabs(value) < 100) return format_significant(value, 3);
  const std::string digits = format_fixed(value, 0);
  return digits.find('e') == std::string::npos ? group_thousands(digits) : digits;
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

std::string line_and_column(std::string_view before) {
  const size_t newline = before.rfind('\n');
  return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1);
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

bool is_variable_name(std::string_view word) {
  constexpr std::string_view k_digits = "0123456789";
  constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return !word.empty() && word.find_first_not_of(k_letters) == std::string_view::npos &&
         k_digits.find(word.front()) == std::string_view::npos;
}

std::string quote_shell(std::string_view word) {
  constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(k_plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  while (!word.empty()) {
    const Utf8Character character = decode_utf8(word);
    const std::string_view bytes = word.substr(0, std::max<size_t>(1, character.bytes));
    const bool stays = character.code == '\n' || character.code == '\t' || !is_unprintable(character.code);
    quoted += bytes == "'" ? "'\\''" : stays && character.bytes > 0 ? std::string(bytes) : print_in_shell(bytes);
    word.remove_prefix(bytes.size());
  }
  return quoted + "'";
}

std::string quote_command(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quote_shell(word);
  return line;
}

std::string render_text(const TextTable& raw) {
  const TextTable table = printable_cells(raw);
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

std::string render_markdown(const TextTable& raw) {
  const TextTable table = printable_cells(raw, "\n");
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
