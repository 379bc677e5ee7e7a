#pragma once

#include <optional>
#include <string_view>

#include "extract/extracted_log.h"
#include "result/kinds.h"

namespace tprimat::logs {

// The kind of an error message: "CUDA out of memory. Tried ..." is out_of_memory; failed if unknown.
EventKind classify_error(std::string_view message);

// A line that reports a failure but is not a Python exception.
struct FailureSign {
  EventKind kind = EventKind::failed;
  std::string_view text;  // the part of the line that says it
  Figure seconds;         // that a collective ran for
  int32_t rank = -1;      // named in the text; -1: none
};
std::optional<FailureSign> find_failure_sign(std::string_view line);

// "AttributeError: ..." or "torch.OutOfMemoryError: ..." from its first letter on; "" for every other line. A name that
// ends otherwise than in Error or Exception counts at the end of a traceback only.
std::string_view find_exception(std::string_view line, bool ends_traceback);

// The cause in an error message, or in a line near the end of a log. Nothing if it states none.
std::optional<FailureKind> find_failure_kind(std::string_view text);

}  // namespace tprimat::logs
