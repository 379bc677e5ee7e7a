#pragma once

#include <optional>
#include <string_view>

#include "extract/extracted_log.h"
#include "result/kinds.h"

namespace tprimat::logs {

// What an error message is about: "CUDA out of memory. Tried ..." is out_of_memory; failed when nothing tells.
EventKind classify_error(std::string_view message);

// One line that tells of a failure without being a Python exception.
struct FailureSign {
  EventKind kind = EventKind::failed;
  std::string_view text;  // the part of the line that says it
  Figure seconds;         // that a collective ran for
  int32_t rank = -1;      // that the text names; -1: none
};
std::optional<FailureSign> find_failure_sign(std::string_view line);

// "AttributeError: ..." or "torch.OutOfMemoryError: ..." from its first letter on; "" for every other line. A name that
// ends otherwise than in Error or Exception counts at the end of a traceback only.
std::string_view find_exception(std::string_view line, bool ends_traceback);

// What the words of an error message, or of a line near the end of a log, say of its cause. Nothing when they say none.
std::optional<FailureKind> find_failure_kind(std::string_view text);

}  // namespace tprimat::logs
