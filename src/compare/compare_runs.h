#pragma once

#include <string>
#include <vector>

#include "base/exit_status.h"
#include "compare/comparison.h"
#include "compare/load_runs.h"
#include "compare/verdict.h"

namespace tprimat {

// Empty lists let everything through.
struct CompareOptions {
  std::vector<Platform> platforms = {};
  std::vector<Framework> frameworks = {};
  std::vector<std::string> models = {}, strategies = {};
  std::string baseline = {};  // path, file name, label, platform or framework; empty: every pair is compared
  std::string sort = {};      // key of a metric, best first; empty: by name, which favours nobody
  double smallest_effect = 0.01;
  bool force = false;
  double assumed_run_spread = k_assumed_run_spread;  // relative, where a side's one run does not show it
};

// Groups by model, audits, judges each pair. Throws Error (usage) when nothing is left to compare, for an unknown
// metric, for a baseline that names nothing, and for too many participants without a baseline.
Comparison compare_runs(LoadedRuns loaded, const CompareOptions& options);

// not_comparable when a pair is, work_failed when a run is invalid, otherwise done. Force does not change what is true.
ExitStatus comparison_status(const Comparison& comparison);

// "AMD Primus is 1.55x faster than NVIDIA NeMo ..."; for a pair that is not comparable and not forced: that it is
// withheld.
std::string headline(const Comparison& comparison, const ModelGroup& group, const Pair& pair);

}  // namespace tprimat
