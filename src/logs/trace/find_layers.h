#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

// Numbers the layers of operations in a trace that states none: by the modules that Python's functions name
// ("nn.Module: BertLayer_3"), else by a sequence of operations that repeats within a step. `sequences`: PyTorch's
// number of each host event, the same on an operation and on its gradient, so that the backward pass has layers too;
// -1: none.
void find_layers(Trace& trace, const std::vector<int64_t>& sequences);

// A stretch of a sequence in which `period` elements repeat `count` times.
struct Repetition {
  size_t begin = 0, period = 0, count = 0;
};
// The longest, and of the longest the one of the shortest period; count 0 where less than half of the sequence repeats
// at least three times.
Repetition find_repetition(const std::vector<uint32_t>& sequence);

}  // namespace tprimat::logs
