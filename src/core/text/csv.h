#pragma once

#include <optional>
#include <string>
#include <string_view>

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

}  // namespace tprimat
