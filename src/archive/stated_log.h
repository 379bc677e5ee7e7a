#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "archive/verification.h"
#include "result/run_result.h"
#include "text/json.h"

namespace tprimat {

// A result as its file has it, and as it reads.
struct StatedResult {
  std::string file;
  Json stored;
  RunResult read;
  bool skip_intervals = false;
};

using StatedResults = std::vector<std::shared_ptr<const StatedResult>>;

// Whether the log that a result names was its source: it has the format of a dialect, or of a suite that followed it.
bool is_from_log(const RunResult& result);

// Reads the log once more as it was read for the results, which have one format, and holds every figure, word and
// setting of theirs against what follows from it: the series, what the framework reported, memory, settings, rates.
// What the user added where the log is silent is taken from the result.
void check_log(const StatedResults& results, const std::string& log_name, const std::string& log, Verification& found);

}  // namespace tprimat
