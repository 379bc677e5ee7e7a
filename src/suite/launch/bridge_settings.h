#pragma once

#include <vector>

#include "launch/launch_plan.h"
#include "text/json.h"

namespace tprimat::suite {

// The settings of a training by section of Megatron-Bridge's configuration ("model", "optimizer", ...), complete: null
// where Megatron-Bridge shall have none. Pipeline stages are not among them.
Json list_bridge_settings(const LaunchRequest& request);

// The same, one by one, as its log shows them: "optimizer.lr".
std::vector<StatedSetting> state_bridge_settings(const LaunchRequest& request);

}  // namespace tprimat::suite
