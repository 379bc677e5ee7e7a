#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "compare/audit.h"
#include "compare/comparison.h"
#include "compare/load_runs.h"
#include "compare/verdict.h"

namespace tprimat::results {

// Empty lists do not filter.
struct CompareOptions {
  std::vector<Platform> platforms = {};
  std::vector<Framework> frameworks = {};
  std::vector<std::string> models = {}, strategies = {};
  // Path of a file or a folder, file name, label, platform or framework; empty: every pair is compared.
  std::string baseline = {};
  std::string sort = {};  // key of a metric, best first; empty: by name, which is neutral
  double smallest_effect = 0.01;
  AuditOptions audit = {};
  bool force = false;
  std::vector<Gate> gates = {};                      // tested on every pair with the baseline
  double assumed_run_spread = k_assumed_run_spread;  // relative, for a side with one run
};

// Groups by model, audits, judges each pair. Throws Error (usage) if nothing is left to compare, for an unknown metric,
// and for a baseline that matches nothing. More than a hundred participants without a baseline are compared with the
// best of them only.
Comparison compare_runs(LoadedRuns loaded, const CompareOptions& options);

// Whether --baseline names a folder: the participant of each model whose files lie there is the baseline. The name of a
// platform or framework takes precedence over a folder of that name.
bool is_baseline_folder(const std::string& baseline);

// With gates, their outcome (compare/gates.h). Otherwise not_comparable when a pair is or repetitions did other work,
// work_failed when a run is invalid, else done. Force does not change the status.
ExitStatus comparison_status(const Comparison& comparison);

// "AMD Primus is 1.55x faster than NVIDIA NeMo ..."; for a pair that is not comparable and not forced: the reason, and
// the raw ratio of the rates.
std::string headline(const Comparison& comparison, const ModelGroup& group, const Pair& pair);

}  // namespace tprimat::results
