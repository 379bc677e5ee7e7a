#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result/run_result.h"

namespace tprimat {

// Appends settings that the framework printed (effective_config) and that contradict the result's work, layout or
// model. Names as Megatron-LM and the frameworks upon it use them.
void compare_printed_settings(const RunResult& result, std::vector<Contradiction>& found);

// Whether the printed settings let the batch grow at the start of the training.
bool names_ramp_up(const std::map<std::string, std::string>& settings);

// The printed switch of forced balance on the experts, by any framework's name; nullptr: none states it.
const std::pair<const std::string, std::string>* find_forced_balance(
    const std::map<std::string, std::string>& settings);

// The printed setting that leaves most weights frozen, as "lora_rank 16": adapters train beside them, or some layers
// alone are trained. Sizes of adapters count only if no switch beside them disables adapters: some programs print their
// defaults.
std::optional<std::string> find_adapters(const std::map<std::string, std::string>& settings);
std::optional<std::string> find_adapters(const RunResult& result);

// The printed values of absent or inactive settings: "", "0.0", "None", "False", "off", "[]" and the like.
bool is_off(std::string_view value);

}  // namespace tprimat
