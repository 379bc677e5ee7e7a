#pragma once

#include <cstddef>

namespace tprimat {

// Capabilities of a standard stream, given by its descriptor.

// A terminal that moves its cursor: not one that TERM calls dumb.
bool is_live_terminal(int descriptor);

// Such a terminal, with neither NO_COLOR (https://no-color.org: set, and not empty) nor --no-color.
bool shows_colour(int descriptor, bool no_colour_option);

// Line width in characters: from COLUMNS, else from the terminal, else `otherwise`. An impossible COLUMNS (0, -1, text,
// 1e9) is ignored.
size_t terminal_width(int descriptor, size_t otherwise);

}  // namespace tprimat
