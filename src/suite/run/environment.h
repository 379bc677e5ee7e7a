#pragma once

#include <map>
#include <string>

#include "base/environment.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// Facts of machine and software that are needed to judge or repeat a run: key -> value, for a result's `environment`.
// Of the environment only variables from a fixed list of those that change speed are taken, so that no token or
// password is ever stored.
std::map<std::string, std::string> describe_environment(const MachineFacts& machine,
                                                        const std::map<std::string, std::string>& libraries,
                                                        const EnvironmentReader& variable = read_environment);

}  // namespace tprimat::suite
