#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "published/table.h"

namespace tprimat::planner {

// A column of the tables in data/published, in the order in which rows are shown.
struct PublishedColumn {
  std::string_view name;
  std::string_view meaning;
};
const std::vector<PublishedColumn>& published_columns();

// How a figure was obtained (column `reading`), and who can open a row's source (column `reach`).
const std::vector<PublishedColumn>& published_readings();
const std::vector<PublishedColumn>& published_reaches();

// The address of a row's source: the file at its commit, the paper, the thread, the pull request. Empty for a source
// that names none of these.
std::string source_link(const PublishedRow& row);

}  // namespace tprimat::planner
