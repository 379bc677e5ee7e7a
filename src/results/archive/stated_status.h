#pragma once

#include <string_view>

#include "archive/stated_result.h"
#include "extract/read_log.h"

namespace tprimat::results {

// Compares how a run ended, as its file states it, with the series of the same file: a reader judges these itself and
// would overwrite the status. Reason and kind of a failure must name the same cause.
void check_status(const StatedResult& result, Verification& found);

// Compares the status of a run of the suite with the end of its log: a complete run shows no failure there, and the
// reason of a failure quotes the log.
void check_end_of_log(const ResultCheck& check, std::string_view log, const logs::ReadLog& read);

}  // namespace tprimat::results
