#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/extracted_log.h"
#include "result/kinds.h"

namespace tprimat::logs {

// How the text of an event begins that a launcher names as the first to fail.
inline constexpr std::string_view k_root_cause = "root cause: ";

// Why a run ended badly.
struct EndCause {
  FailureKind kind = FailureKind::error;
  std::string sentence;
  std::optional<int64_t> rank;  // the first to fail, where the log names it
  bool is_consequence = false;  // the log shows only what another failure led to, or the stop that was ordered
  std::string bare_error = {};  // the error alone, where the sentence adds only that a process ended with it
};

// The likeliest root cause among the events of the log. Nothing when it shows no failure after its last step.
std::optional<EndCause> explain_end(const ExtractedLog& log);

// Whether a log of no known format is that of a training all the same: it names GPUs or PyTorch, or a failure is one
// that only a job on GPUs can have.
bool speaks_of_training(const ExtractedLog& log);

}  // namespace tprimat::logs
