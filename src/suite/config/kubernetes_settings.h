#pragma once

#include "config/draft.h"

namespace tprimat::suite {

// Takes launch.kubernetes into the experiment and reports the values that Kubernetes would refuse.
void resolve_kubernetes(Draft& draft);

}  // namespace tprimat::suite
