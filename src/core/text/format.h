#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"

// Formats figures for people. GB = 1e9 bytes.
namespace tprimat {

std::string format_si(double value, std::string_view unit);     // 4.13e11, "FLOP/s" -> "413 GFLOP/s"
std::string format_fixed(double value, int decimals);           // 1.25, 1 -> "1.2"; from 1e15 on "1.25e+15"
std::string format_gb(double bytes);                            // "34.29 GB"
std::string format_memory(double bytes);                        // the same, "342.9 MB" below 1 GB
std::string format_duration(double seconds);                    // "1.604 s", "3 min 12 s", "2 h 05 min"
std::string format_percent(double fraction, int decimals = 1);  // 0.4213 -> "42.1 %"
std::string format_count(double value);                    // 13425.1 -> "13 425"; below 100 three significant digits
std::string group_thousands(std::string digits);           // "8030261248" -> "8 030 261 248"
std::string format_significant(double value, int digits);  // 1.602, never scientific between 1e-4 and 1e7

// Where the text behind `before` begins: "12:5".
std::string line_and_column(std::string_view before);

// Whether a shell can assign to it: letters, digits and _, not beginning with a digit.
bool is_variable_name(std::string_view word);

// "a, b, c". fmt::join of words compiles half a second of templates into each source.
std::string join(std::span<const std::string> words, std::string_view between);
std::string join(std::span<const std::string_view> words, std::string_view between);

// The candidate nearest to `word` by edit distance, or "" when none is near enough for "did you mean".
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// Quotes for a POSIX shell where needed: a b -> 'a b'. Unprintable characters, except line breaks and tabs, become
// octal escapes of printf: 'a'"$(printf '\033')"'b'.
std::string quote_shell(std::string_view word);
std::string quote_command(std::span<const std::string> words);  // each quoted, with spaces between

// Aligned columns for a terminal, two spaces apart. Numbers are the caller's to format; `right` lists the columns
// aligned right. Cell width counts code points, not bytes. Cells are made printable.
struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> right;
};
std::string render_text(const TextTable& table);
std::string render_markdown(const TextTable& table);  // GitHub pipe table; | in cells is escaped, a line break is <br>

}  // namespace tprimat
