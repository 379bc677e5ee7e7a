#pragma once

#include <map>
#include <string>
#include <vector>

namespace tprimat::logs {

// Settings of the work that two dumps state differently, as "attention_dropout 0.0 and 0.1". A setting that only one
// of them names counts as off in the other.
std::vector<std::string> differing_work_settings(const std::map<std::string, std::string>& before,
                                                 const std::map<std::string, std::string>& after);

}  // namespace tprimat::logs
