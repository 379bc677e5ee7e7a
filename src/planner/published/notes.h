#pragma once

#include <string>
#include <vector>

#include "published/table.h"

namespace tprimat::planner {

// What the groups of a pattern (ECMAScript) hold in a row's cell, whose first 1000 characters are searched; empty where
// it does not occur. `pattern` is a literal, compiled once.
std::vector<std::string> find_in_cell(const PublishedRow& row, const std::string& column, const char* pattern);

inline std::vector<std::string> find_in_notes(const PublishedRow& row, const char* pattern) {
  return find_in_cell(row, "notes", pattern);
}

}  // namespace tprimat::planner
