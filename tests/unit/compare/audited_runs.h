#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compare/audit.h"
#include "unit/compare/sample_runs.h"

// Runs as the audit sees them, and what it finds in them.
namespace tprimat::results {

inline const Finding* find_code(const std::vector<Finding>& findings, const std::string& code) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& each) { return each.code == code; });
  return found == findings.end() ? nullptr : &*found;
}

inline Contender participant(LoadedRun run) { return {"A", "label", {std::move(run)}, {}}; }

inline LoadedRun plain() {
  LoadedRun run = sample_run("a.json", Platform::nvd, Framework::nemo, 1.0);
  run.result.framework_version = "2.0";
  return run;
}

// The same work once more, with noise of its own.
inline LoadedRun other() {
  LoadedRun run = noisy_run("b.json", Platform::nvd, Framework::nemo, 1.0, 1);
  run.result.framework_version = "2.0";
  return run;
}

inline TelemetrySummary machine_with_others(double threads) {
  TelemetrySummary machine;
  machine.source = "proc:machine";
  machine.others_busy_threads = threads;
  return machine;
}

}  // namespace tprimat::results
