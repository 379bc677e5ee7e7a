#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Cells of CSV (RFC 4180), quoted where they need it.
namespace tprimat {

// Bytes as they are; a byte 0, at which many readers stop, becomes a blank.
std::string csv_cell(std::string cell);

// Foreign text for spreadsheets: printable, and never a formula.
std::string csv_text(std::string_view text);

// All digits; empty where it is not known.
std::string csv_number(const std::optional<double>& value);

// Prefixes a single quote to text that a spreadsheet would read as a formula (after blanks a = + - or @, also as a
// full-width character), as OWASP advises; other cells stay. For text alone: -1 is a number.
std::string disarm_formula(std::string cell);

// Reads the first row, `a, "b ""c"", d"`, and removes it from the text: quotes may enclose commas and line ends, and
// two of them are one. Cells beyond the limit are dropped.
std::vector<std::string> take_csv_row(std::string_view& text, size_t max_cells = SIZE_MAX);

}  // namespace tprimat
