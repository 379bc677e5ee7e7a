#include "planner/planner_settings.h"

#include "base/files.h"

namespace tprimat::planner {

PlannerSettings load_planner_settings(const std::string& path) {
  if (path.empty()) return {};
  return {parse_parameters(read_file(path), path), path};
}

}  // namespace tprimat::planner
