#pragma once

#include <map>
#include <optional>
#include <string>

#include "spec/experts.h"

// What printed settings say of a mixture of experts, beside its sizes.
namespace tprimat::logs {

// Routed experts of a layer; 1 and "None" are a dense model.
std::optional<int64_t> stated_experts(const std::map<std::string, std::string>& settings);

// The setting that shows a mixture of experts whose number is not stated, or is no number:
// "expert_model_parallel_size 8", "num_experts NaN".
std::string find_routing(const std::map<std::string, std::string>& settings);

bool shows_experts(const std::map<std::string, std::string>& settings);

// Who chose the experts; balanced where any setting forces it. Nothing where no setting tells, or where the load is
// uneven by force.
std::optional<Routing> stated_routing(const std::map<std::string, std::string>& settings);

std::optional<Dispatcher> stated_dispatcher(const std::map<std::string, std::string>& settings);

// Under these settings, with this value, a reader notes that records print such a loss. Megatron-LM prints the mean of
// the layers without the coefficient, each layer's being added to the loss; TRL the one of the whole model, without it;
// Megatron-DeepSpeed what it adds.
inline constexpr const char* k_printed = "printed by the records";
inline constexpr const char* k_layer_mean_loss = "load_balancing_loss";
inline constexpr const char* k_layer_mean_z_loss = "z_loss of the layers";
inline constexpr const char* k_model_mean_loss = "aux_loss of the model";
inline constexpr const char* k_added_loss = "moe loss";

}  // namespace tprimat::logs
