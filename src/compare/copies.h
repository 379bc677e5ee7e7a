#pragma once

#include <string>

#include "compare/comparison.h"

namespace tprimat {

// Bytes that two results share exactly when they are one measurement; empty for what can be a copy of nothing.
std::string measurement_key(const RunResult& result);

// One measurement under two names: the same step times and losses, and the same time stamp or times too various to
// agree by chance (logs round theirs). Nothing is known of runs without step times but their averages and time stamp.
bool is_same_measurement(const RunResult& a, const RunResult& b);

// Counts each measurement of a participant once; the others' files are named in its `copies`.
void set_copies_aside(Contender& contender);

}  // namespace tprimat
