#include "model_files/shard_runs.h"

#include <algorithm>

namespace tprimat::engine {
namespace {

// Clips a run to [begin, end) and joins it to the one before where both go on.
void add_run(std::vector<ShardRun>& runs, ShardRun run, int64_t begin, int64_t end) {
  const int64_t skipped = std::max<int64_t>(0, begin - run.local);
  run = {run.whole + skipped, run.local + skipped, std::min(run.local + run.count, end) - run.local - skipped};
  if (run.count <= 0) return;
  if (!runs.empty() && runs.back().whole + runs.back().count == run.whole)
    runs.back().count += run.count;
  else
    runs.push_back(run);
}

}  // namespace

std::vector<ShardRun> shard_runs(const Shard& shard, int64_t begin, int64_t end) {
  std::vector<ShardRun> runs;
  const bool whole_rows = shard.cols == shard.whole_cols;
  int64_t local = 0;  // of the range's first value
  for (const RowRange& range : shard.rows) {
    const int64_t values = range.count * shard.cols;
    const int64_t first = range.first * shard.whole_cols + shard.first_col;
    if (local < end && local + values > begin) {
      if (whole_rows) {
        add_run(runs, {first, local, values}, begin, end);
      } else {
        const int64_t last_row = (std::min(end - local, values) - 1) / shard.cols;
        for (int64_t row = std::max<int64_t>(0, begin - local) / shard.cols; row <= last_row; ++row)
          add_run(runs, {first + row * shard.whole_cols, local + row * shard.cols, shard.cols}, begin, end);
      }
    }
    local += values;
  }
  return runs;
}

}  // namespace tprimat::engine
