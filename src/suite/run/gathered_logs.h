#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "run/extracted_runs.h"
#include "run/log_places.h"

namespace tprimat::suite {

// A log to extract, and why it is believed to be what it is.
struct GatheredLog {
  std::filesystem::path path;
  std::string place;                 // that it was found in; "LLAMA_LOG" where a variable names it
  std::string model, model_because;  // key of the configuration
  std::string model_named_by;        // the variable; empty: nobody named it
  std::string behind_model;          // what its name adds: a strategy, a dataset, "r2"
  NamedFacts named;
};

struct Gathering {
  std::vector<GatheredLog> taken;
  std::vector<SkippedFile> passed_over;
  size_t extracted = 0;  // of those passed over: logs whose result is there
  std::vector<LogPlace> places;
  std::vector<std::string> variables;  // <MODEL>_LOG of every model
};

struct GatherRequest {
  std::filesystem::path output;                    // folder of logs and results
  std::map<std::string, std::string> environment;  // of this process
  std::string format;                              // of the logs; empty: it is detected
  SearchLimits limits;
};

// Finds the newest log of each run: those that variables name, and those in the usual places. A run is a model with a
// framework on a platform, and what the log's name adds to them. Throws Error where a variable names no file or folder.
Gathering gather_logs(const LoadedExperiment& configuration, const GatherRequest& request);

// "train_amd_prim_llama_bc.json": by benchmarking.output.filename_format. Nothing where the platform is not known.
std::optional<std::string> gathered_result_name(const Experiment& experiment, const RunResult& result,
                                                const std::string& behind_model);

}  // namespace tprimat::suite
