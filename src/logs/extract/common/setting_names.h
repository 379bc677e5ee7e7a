#pragma once

#include <map>
#include <string>
#include <vector>

#include "extract/extracted_log.h"

namespace tprimat::logs {

// Fills unknown facts from settings by the frameworks' names. Impossible values are ignored.
void apply_settings(const std::map<std::string, std::string>& settings, LoggedFacts& facts);

// An effective setting under our configuration's name.
struct EffectiveSetting {
  std::string key, value;
};
std::vector<EffectiveSetting> effective_settings(const LoggedFacts& facts);

}  // namespace tprimat::logs
