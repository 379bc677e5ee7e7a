#pragma once

#include <string>
#include <vector>

#include "text/json.h"

namespace tprimat {

// A result file brought to the keys of schema version 1. What had to be assumed is added to `notes`, one sentence each.
// Files of version 1 come back as they are. Files without a version are older: raw_step_times, "N/A" for what was not
// known, a framework's name as software stack, no model, no status ... `file_name` is the last source of platform,
// framework and model. Throws Error (where = file_name) for JSON that is no benchmark result.
Json upgrade_result(const Json& json, const std::string& file_name, std::vector<std::string>& notes);

}  // namespace tprimat
