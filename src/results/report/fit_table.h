#pragma once

#include <vector>

#include "text/format.h"

namespace tprimat::results {

// The table in a form that is at most `width` columns wide: as it is; with every interval on a line below its figure;
// with prose wrapped; else as several tables, each with the columns that name the rows. Only a single word can make it
// wider.
std::vector<TextTable> fit_table(const TextTable& table, size_t width);

}  // namespace tprimat::results
