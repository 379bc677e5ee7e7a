#pragma once

#include <memory>
#include <string>
#include <vector>

#include "archive/stated_result.h"

namespace tprimat::results {

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
