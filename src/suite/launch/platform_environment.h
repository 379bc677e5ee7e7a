#pragma once

#include <map>
#include <string>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// The environment variables that a platform's settings become. On a CPU, GPUs of the machine are hidden, so that a
// framework which would take them by itself does not.
std::map<std::string, std::string> platform_environment(const LaunchRequest& request);

}  // namespace tprimat::suite
