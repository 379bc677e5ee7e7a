#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace tprimat::cli {

struct Progress {
  size_t done = 0, all = 0;
};

// "3 of 10 folds, 21.0 s left"; the time once one is done.
std::string describe_progress(const Progress& progress, std::string_view things, double seconds);

// That on a line of stderr which the next call replaces, and the last one erases. Only on a terminal, and not with -q.
void show_progress(const Progress& progress, std::string_view things, SteadyClock::time_point start);

}  // namespace tprimat::cli
