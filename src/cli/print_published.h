#pragma once

#include <string>
#include <vector>

#include "planner/published_entry.h"

namespace tprimat::cli {

// One line each, aligned. Of what the id says already, and then of the rest, columns are left out until a line has at
// most `width` characters.
std::string render_published_list(const std::vector<planner::PublishedEntry>& entries, size_t width);

// RFC 4180, with the keys of the JSON as header.
std::string render_published_csv(const std::vector<planner::PublishedEntry>& entries);

// Every cell with its meaning, then what follows from them.
std::string render_published_row(const planner::PublishedDetails& details, size_t width);

}  // namespace tprimat::cli
