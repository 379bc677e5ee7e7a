#pragma once

#include <map>
#include <string>
#include <vector>

#include "extract/extracted_log.h"

namespace tprimat::logs {

// Fills facts that are not known yet from settings by the frameworks' own names. A value that cannot be is ignored.
void apply_settings(const std::map<std::string, std::string>& settings, LoggedFacts& facts);

// A setting in our words, as a configuration of ours names it: what a run was really done with.
struct EffectiveSetting {
  std::string key, value;
};
std::vector<EffectiveSetting> effective_settings(const LoggedFacts& facts);

}  // namespace tprimat::logs
