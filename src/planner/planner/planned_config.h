#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan_report.h"

namespace tprimat::planner {

struct StatedKey {
  std::string key, value;
};

// What a configuration says of a model besides its shape. All empty for one of the catalogues.
struct PlannedModel {
  std::string key;                 // under `models:`
  std::string name;                // models.<key>.name
  std::vector<StatedKey> further;  // other keys, as dataset_path
};

// A configuration that trains in the layout `line`: its parallelism, and model, batch, sequence, devices, precision and
// recomputation that it belongs to, and the framework that runs it, where configurations know one. The model's shape is
// stated unless the catalogue has that very shape. Throws Error for a precision that configurations do not know.
std::string render_planned_config(const PlanRequest& request, const PlanLine& line, const PlannedModel& planned,
                                  const std::optional<Framework>& framework);

}  // namespace tprimat::planner
