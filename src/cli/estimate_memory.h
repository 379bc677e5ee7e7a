#pragma once

#include <string>

#include "cli/session.h"

namespace tprimat {

struct MemoryRequest {
  std::string model;
  std::string platform = "auto", framework, strategy;  // empty: as the configuration says
};

// The planner's memory of the configuration's layout, part by part, for every framework that would run the model:
// printed as tables or JSON. Throws Error.
ExitStatus estimate_layout_memory(const Session& session, const MemoryRequest& request);

}  // namespace tprimat
