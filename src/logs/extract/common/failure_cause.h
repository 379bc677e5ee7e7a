#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/extracted_log.h"
#include "result/kinds.h"

namespace tprimat::logs {

// Prefix of the event that a launcher names as the first failure.
inline constexpr std::string_view k_root_cause = "root cause: ";

// Why a run failed.
struct EndCause {
  FailureKind kind = FailureKind::error;
  std::string sentence;
  std::optional<int64_t> rank;  // the first to fail, where the log names it
  bool is_consequence = false;  // the log shows only consequences of another failure, or a requested stop
  std::string bare_error = {};  // the error alone, if the sentence only adds that a process ended with it
};

// The likeliest root cause among the events of the log. Nothing if it shows no failure after its last step.
std::optional<EndCause> explain_end(const ExtractedLog& log);

// Whether a log of an unknown format is from a training: it names GPUs or PyTorch, or has a failure that only GPU jobs
// have.
bool speaks_of_training(const ExtractedLog& log);

}  // namespace tprimat::logs
