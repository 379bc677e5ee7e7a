#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/environment.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// The variables of a run's ranks: those that a start script logged, else those that the launch adds, else those of this
// process, where the launcher passes them on.
EnvironmentReader environment_of_ranks(const PlannedRun& run);

// Variables that a start script prints as it sets them: that of Primus does, as "[NODE-0(host)] [INFO] NAME: value" or
// "[NODE-0(host)]     NAME=value".
std::map<std::string, std::string> read_logged_variables(std::string_view log);

}  // namespace tprimat::suite
