#pragma once

#include <vector>

#include "result/run_result.h"

namespace tprimat {

// Appends settings that the framework printed (effective_config) and that say other work, layout or model than the
// facts of the result. Names as Megatron-LM and the frameworks upon it use them.
void compare_printed_settings(const RunResult& result, std::vector<Contradiction>& found);

}  // namespace tprimat
