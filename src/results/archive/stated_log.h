#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/verification.h"
#include "result/run_result.h"
#include "text/json.h"

namespace tprimat::results {

// Validation losses by step, which no result holds: those of the step records and those of the log.
struct Evaluations {
  std::string records, log;  // their files
  std::optional<std::map<int64_t, double>> recorded, printed;
};

// A result as its file has it, and as it reads.
struct StatedResult {
  std::string file;
  Json stored;
  RunResult read;
  bool of_suite = false;  // see is_of_suite()
  bool skip_intervals = false;
  std::shared_ptr<Evaluations> evaluations = std::make_shared<Evaluations>();
};

struct LogText {
  std::string name, text;
};

using StatedResults = std::vector<std::shared_ptr<const StatedResult>>;

// Whether a result names its log and the format. The format of a log is detected again where this program does not know
// the stated one.
bool is_from_log(const RunResult& result);

// Reads the log once more as it was read for the results, which have one format, and holds every figure, word and
// setting of theirs against what follows from it: the series, what the framework reported, memory, settings, rates.
// What the user added where the log is silent is taken from the result.
void check_log(const StatedResults& results, const LogText& log, Verification& found);

}  // namespace tprimat::results
