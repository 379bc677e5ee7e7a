#pragma once

#include <string>

#include "planner/parameters.h"

namespace tprimat {

// The figures that a prediction rests on, and where they come from.
struct PlannerSettings {
  ParameterSet parameters = built_in_parameters();
  std::string source = "built-in";  // or the file that `tprimat plan --calibrate` wrote
};

// The built-in ones for an empty path. Throws Error.
PlannerSettings load_planner_settings(const std::string& path);

}  // namespace tprimat
