#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "published/table.h"

namespace tprimat {

// Cells of a published row as the planner reads them.

inline constexpr int64_t k_most_batch = int64_t{1} << 30;  // sequences per step; more is no training's

// The first thousand characters, in lower case.
std::string lower_text(std::string_view text);
bool mentions(const std::string& text, std::string_view word);

// A whole number from 1 to 2^24; nothing for an empty cell and for anything else.
std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column);

}  // namespace tprimat
