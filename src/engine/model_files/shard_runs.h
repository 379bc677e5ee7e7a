#pragma once

#include <cstdint>
#include <vector>

#include "parameters/parameters.h"

namespace tprimat::engine {

// Values that lie side by side both in a rank's part of a weight and in the whole weight.
struct ShardRun {
  int64_t whole = 0;  // index of the first in the whole weight
  int64_t local = 0;  // index of the first in the part
  int64_t count = 0;
  bool operator==(const ShardRun&) const = default;
};

// The local values [begin, end) of a shard, in their order: one run per row, or one per range of whole rows.
std::vector<ShardRun> shard_runs(const Shard& shard, int64_t begin, int64_t end);

}  // namespace tprimat::engine
