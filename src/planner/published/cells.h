#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "published/table.h"

namespace tprimat::planner {

// The first four thousand characters, in lower case.
std::string lower_text(std::string_view text);
bool mentions(const std::string& lower, std::string_view word);

// A whole number that a shape or layout can have, from 1 to 2^24; nothing for an empty cell and for anything else.
std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column);

}  // namespace tprimat::planner
