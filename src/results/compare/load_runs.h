#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

namespace tprimat::results {

struct LoadedRuns {
  std::vector<LoadedRun> runs;  // in the order of the paths, directories sorted by name; a file named twice counts once
  std::vector<SkippedFile> skipped;
  bool all_series = true;  // false: so many that only the series a comparison looks at were kept
};

// Files and directories (their *.json that are results; the rest is named in `skipped`). Throws Error for a path that
// does not exist and for a file that was named itself and is no result.
LoadedRuns load_runs(const std::vector<std::string>& paths);

// Counted before the per-step records were dropped, where they were.
SkippedUpdates skipped_updates(const LoadedRun& run);

}  // namespace tprimat::results
