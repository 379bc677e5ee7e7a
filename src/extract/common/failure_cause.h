#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/extracted_log.h"

namespace tprimat {

// How the text of an event begins that a launcher names as the first to fail.
inline constexpr std::string_view k_root_cause = "root cause: ";

// Why the run ended badly, in one sentence: the likeliest root cause among its events. Nothing when the log shows no
// failure after its last step.
std::optional<std::string> explain_end(const ExtractedLog& log);

// Whether a log of no known format is that of a training all the same: it names GPUs or PyTorch, or a failure is one
// that only a job on GPUs can have.
bool speaks_of_training(const ExtractedLog& log);

}  // namespace tprimat
