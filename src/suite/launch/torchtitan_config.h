#pragma once

#include <string>
#include <utility>

#include "launch/launch_plan.h"
#include "text/enum_names.h"
#include "text/json.h"

namespace tprimat::suite {

// Which of torchtitan's models a shape is. Norms on queries and keys, or heads whose widths do not add up to the
// model's, make a qwen3, otherwise it is a llama3 or, with experts, a llama4.
enum class TitanFamily { llama3, llama4, qwen3, deepseek_v3, gpt_oss };
constexpr auto enum_table(TitanFamily) {
  return std::to_array<std::pair<TitanFamily, std::string_view>>({{TitanFamily::llama3, "llama3"},
                                                                  {TitanFamily::llama4, "llama4"},
                                                                  {TitanFamily::qwen3, "qwen3"},
                                                                  {TitanFamily::deepseek_v3, "deepseek_v3"},
                                                                  {TitanFamily::gpt_oss, "gpt_oss"}});
}
TitanFamily titan_family(const ModelSpec& model);

// FSDP2 shards over these ranks together, and it is what multiplies in another format than that of the weights.
bool shards_with_fsdp(const ParallelSpec& layout);

// The settings of a training under the names of torchtitan's configuration: section -> key -> value. They state
// everything, independent of torchtitan's defaults.
Json list_titan_settings(const LaunchRequest& request);

// The same as torchtitan.toml.
std::string write_titan_config(const LaunchRequest& request);

}  // namespace tprimat::suite
