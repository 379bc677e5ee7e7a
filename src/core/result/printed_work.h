#pragma once

#include <map>
#include <string>
#include <vector>

#include "result/run_result.h"

namespace tprimat {

// Appends settings that the framework printed (effective_config) and that say other work, layout or model than the
// facts of the result. Names as Megatron-LM and the frameworks upon it use them.
void compare_printed_settings(const RunResult& result, std::vector<Contradiction>& found);

// Whether the printed settings let the batch grow at the start of the training.
bool names_ramp_up(const std::map<std::string, std::string>& settings);

}  // namespace tprimat
