#pragma once

#include <optional>
#include <vector>

#include "extract/extracted_log.h"

namespace tprimat::logs {

using Course = std::vector<const ExtractedStep*>;

// The steps that count in the end: a restart replaces the steps it repeats.
Course final_course(const ExtractedLog& log);

// The tokens per step that the log states; nothing unless all steps agree.
std::optional<int64_t> stated_tokens(const Course& course);

// Updates of the course that the optimizer skipped: the sum of the log's own counter, else the number of events.
// Nothing without either: a log that mentions no skipped update may be unable to report one.
std::optional<int64_t> count_skipped_updates(const Course& course, const ExtractedLog& log);

}  // namespace tprimat::logs
