#pragma once

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"

namespace tprimat::test {

using Row = std::map<std::string, std::string>;

// Rows of a table with tabs and a header line; empty when the file is not there.
inline std::vector<Row> load_table(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  std::vector<Row> rows;
  std::vector<std::string> columns;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '\t');) cells.push_back(cell);
    if (columns.empty()) {
      columns = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tprimat::test
