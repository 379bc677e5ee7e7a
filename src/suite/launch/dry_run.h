#pragma once

#include <string>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// The plan as a shell script: writes the generated files, then runs the command in its working directory with its
// environment.
std::string render_shell(const LaunchPlan& plan);

// A comment line of a shell script, whatever the text contains.
std::string render_comment(const std::string& text);

}  // namespace tprimat::suite
