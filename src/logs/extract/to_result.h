#pragma once

#include <optional>
#include <string>

#include "extract/read_log.h"
#include "result/run_result.h"

namespace tprimat::logs {

// What the user knows and the log does not say. Empty: nothing.
struct KnownFacts {
  std::optional<Platform> platform;
  std::string model, device;
  std::optional<int64_t> devices, global_batch_size, sequence_length;
  std::optional<Precision> precision;
  std::optional<int64_t> fixed_warmup_steps;
};

// One log as a result, judged: of steps that were repeated after a restart the last attempt counts; steps whose time
// holds something else are labelled and left out of the steady state; a log that ends before its last step, or in a
// failure, is no complete run. What the user knows is used where the log is silent; where it contradicts, the log wins
// and a warning says so.
RunResult make_result(const ReadLog& read, const std::string& path, const KnownFacts& known);

// A name that no catalogue knows leaves figures out, and may be a slip.
void warn_about_unknown_names(RunResult& result, const KnownFacts& known);

}  // namespace tprimat::logs
