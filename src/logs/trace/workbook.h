#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// A cell with a value. Numbers are kept as they are written.
struct SheetCell {
  uint32_t column = 0;    // from 0
  std::string_view text;  // lies in the workbook
};

struct SheetRow {
  uint32_t number = 0;           // from 1
  std::vector<SheetCell> cells;  // in the order of the file
};

struct Sheet {
  std::string name;
  uint32_t rows = 0, columns = 0;  // the furthest that hold a value
  std::vector<SheetRow> content;   // rows with a value
};

// An .xlsx file. Moves, but does not copy: cells refer to its texts.
struct Workbook {
  Workbook() = default;
  Workbook(Workbook&&) = default;
  Workbook& operator=(Workbook&&) = default;

  std::vector<Sheet> sheets;
  std::deque<std::string> texts;  // blocks of many
};

// Inline and shared strings, numbers, and the stored results of formulas; no styles, so dates are numbers. A part may
// unpack to 32 MB and all parts together to 128 MB; more throws, and so does a file that is not a workbook.
Workbook read_workbook(std::string_view bytes, std::string_view where);

std::string_view cell_text(const SheetRow& row, uint32_t column);  // empty when there is none
std::optional<double> cell_number(const SheetRow& row, uint32_t column);

}  // namespace tprimat::logs
