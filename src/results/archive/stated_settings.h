#pragma once

#include <string>

#include "archive/stated_log.h"
#include "extract/read_log.h"

namespace tprimat::results {

// Compares the result of a run of the suite with the log of that run: the settings that the log prints, by the audit of
// the result where it names them, and every line of our own trainer to the printed digits.
void check_log_of_run(const StatedResult& result, const LogText& log, const logs::ReadLog& read, Verification& found);

}  // namespace tprimat::results
