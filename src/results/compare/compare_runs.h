#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "compare/audit.h"
#include "compare/comparison.h"
#include "compare/load_runs.h"
#include "compare/verdict.h"

namespace tprimat::results {

// Empty lists let everything through.
struct CompareOptions {
  std::vector<Platform> platforms = {};
  std::vector<Framework> frameworks = {};
  std::vector<std::string> models = {}, strategies = {};
  // Path of a file or a folder, file name, label, platform or framework; empty: every pair is compared.
  std::string baseline = {};
  std::string sort = {};  // key of a metric, best first; empty: by name, which favours nobody
  double smallest_effect = 0.01;
  AuditOptions audit = {};
  bool force = false;
  std::vector<Gate> gates = {};                      // tested on every pair with the baseline
  double assumed_run_spread = k_assumed_run_spread;  // relative, where a side's one run does not show it
};

// Groups by model, audits, judges each pair. Throws Error (usage) when nothing is left to compare, for an unknown
// metric, and for a baseline that names nothing. More than a hundred participants without a baseline are compared with
// the best of them only.
Comparison compare_runs(LoadedRuns loaded, const CompareOptions& options);

// Whether --baseline names a folder: the participant of each model whose files lie there is the baseline. The name of a
// platform or framework stays one where a folder is called alike.
bool is_baseline_folder(const std::string& baseline);

// With gates, their outcome (compare/gates.h). Otherwise not_comparable when a pair is or repetitions did other work,
// work_failed when a run is invalid, else done. Force does not change what is true.
ExitStatus comparison_status(const Comparison& comparison);

// "AMD Primus is 1.55x faster than NVIDIA NeMo ..."; for a pair that is not comparable and not forced: why nobody is
// called faster, and the ratio of the rates as a plain figure.
std::string headline(const Comparison& comparison, const ModelGroup& group, const Pair& pair);

}  // namespace tprimat::results
