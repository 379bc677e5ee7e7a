#pragma once

#include <string>
#include <vector>

#include "extract/attempts.h"
#include "extract/to_result.h"
#include "run/configured_facts.h"

namespace tprimat::suite {

struct ExtractOptions {
  std::string format;  // of the log; empty: it is detected
  logs::AttemptChoice attempts;
  std::vector<std::string> telemetry;  // files, joined to the steps by time
  logs::KnownFacts known;

  // Set: what the log does not state comes from this configuration, and is listed in source.assumed.
  const LoadedExperiment* configuration = nullptr;
  NamedFacts named = {};                   // by the place and the name of the log
  std::string model_named_by = "--model";  // who names known.model
};

// One log as a result, with the telemetry joined to its steps; one result per attempt if all are requested. Throws
// Error.
std::vector<RunResult> extract_runs(const std::string& path, const ExtractOptions& options);

}  // namespace tprimat::suite
