#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::planner {

// One row of a table of published measurements. A cell that the table does not have, or leaves empty, is "".
struct PublishedRow {
  int64_t line = 0;  // in the file, from 1
  std::map<std::string, std::string, std::less<>> cells;
  const std::string& cell(std::string_view column) const;
};

struct PublishedTable {
  std::string name;  // file name without folder and extension
  std::vector<PublishedRow> rows;
};

// Tab-separated, one header row. Columns that are not known are ignored; docs/metrics.md lists those that are read.
// Throws Error, naming `path` and the line, for text that is no such table.
PublishedTable parse_published_table(std::string_view text, const std::string& path);
PublishedTable load_published_table(const std::string& path);

}  // namespace tprimat::planner
