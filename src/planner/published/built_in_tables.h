#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "published/table.h"

namespace tprimat::planner {

// Of the rows in data/published, named in its README.md; it rises with every release that changes a figure.
constexpr int64_t k_published_version = 1;

// The published results that come with the program, one table per kind of source, parsed at the first call. Every row
// has an id of its own and says its source, reach and reading. data/published/README.md has the columns.
const std::vector<PublishedTable>& built_in_tables();

// Nothing for an id that no row has.
const PublishedRow* find_built_in_row(std::string_view id);

// The word that stands for the built-in tables where a command takes files.
inline constexpr std::string_view k_published_word = "published";

// The tables of these files, the built-in ones for the word. Throws Error like load_published_table().
std::vector<PublishedTable> load_published_tables(const std::vector<std::string>& paths);

}  // namespace tprimat::planner
