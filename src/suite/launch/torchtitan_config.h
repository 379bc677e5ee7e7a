#pragma once

#include <string>

#include "launch/launch_plan.h"
#include "text/json.h"

namespace tprimat::suite {

// torchtitan has this shape as its qwen3: norms on queries and keys, or heads whose widths do not add up to the
// model's. Otherwise it is a llama3.
bool is_titan_qwen3(const ModelSpec& model);

// FSDP2 shards over these ranks together, and it is what multiplies in another format than that of the weights.
bool shards_with_fsdp(const ParallelSpec& layout);

// The settings of a training under the names of torchtitan's configuration: section -> key -> value. They state
// everything, independent of torchtitan's defaults.
Json list_titan_settings(const LaunchRequest& request);

// The same as torchtitan.toml.
std::string write_titan_config(const LaunchRequest& request);

}  // namespace tprimat::suite
