#pragma once

#include <string>

#include "planner/parameters.h"

namespace tprimat::planner {

// The figures that a prediction rests on, and where they come from.
struct PlannerSettings {
  ParameterSet parameters = built_in_parameters();
  std::string file = {};  // that `tprimat plan --calibrate` wrote; empty: they are built in
  bool is_built_in() const { return file.empty(); }
  std::string source() const { return is_built_in() ? "built-in" : file; }
};

// The built-in ones for an empty path. Throws Error.
PlannerSettings load_planner_settings(const std::string& path);

}  // namespace tprimat::planner
