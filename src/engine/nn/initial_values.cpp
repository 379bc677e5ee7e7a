#include "nn/initial_values.h"

#include <algorithm>

#include "base/checksum.h"

namespace tprimat::engine {
namespace {

uint64_t mix(uint64_t state) { return mix_bits(state + 0x9E3779B97F4A7C15u); }

}  // namespace

std::vector<InitialPiece> initial_values(const Parameter& parameter, int64_t seed, int64_t begin, int64_t count) {
  const Shard& shard = parameter.shard;
  std::vector<InitialPiece> pieces;
  int64_t before = 0;  // local values in the row ranges so far
  for (const RowRange& rows : shard.rows) {
    const int64_t here = rows.count * shard.cols;
    const int64_t skip = std::max<int64_t>(begin - before, 0), end = std::min(begin + count - before, here);
    if (skip < end)
      pieces.push_back({before + skip - begin,
                        end - skip,
                        {.mean = parameter.mean,
                         .stddev = parameter.stddev,
                         .stream = mix(static_cast<uint64_t>(seed) ^ fnv1a(parameter.name)),
                         .first = rows.first * shard.whole_cols + shard.first_col,
                         .cols = shard.cols,
                         .whole_cols = shard.whole_cols,
                         .skip = skip}});
    before += here;
  }
  return pieces;
}

}  // namespace tprimat::engine
