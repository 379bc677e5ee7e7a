#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/comparison.h"

namespace tprimat {

// Bytes that two results share exactly when they are one measurement; empty for what can be a copy of nothing. Step
// times too various to agree by chance (logs round theirs) say it alone. Where they are few or alike, losses and time
// stamp must agree too, and of runs without step times their averages.
std::string measurement_key(const RunResult& result);

// Files of two participants with the same step times, of those whose step times are too various to agree by chance.
std::vector<std::pair<const LoadedRun*, const LoadedRun*>> find_same_measurements(const Contender& reference,
                                                                                  const Contender& subject);

// Counts each measurement of a participant once; the others' files are named in its `copies`.
void set_copies_aside(Contender& contender);

}  // namespace tprimat
