#pragma once

#include <string_view>

#include "archive/stated_result.h"

namespace tprimat::results {

// Compares every line of our own trainer with the result, to the printed digits: each header, each step, each
// evaluation. Readers of logs merge lines that repeat a step and keep the first header, so the lines are read here
// one by one. A step without a line does not hold, nor does a line without a step.
void check_own_log(const ResultCheck& check, std::string_view log);

// Compares the validation losses of step records and log, once both have been read.
void check_evaluations(const StatedResult& result, Verification& found);

}  // namespace tprimat::results
