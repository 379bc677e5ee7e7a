#pragma once

#include <map>
#include <string>
#include <string_view>

#include "extract/course.h"
#include "result/run_result.h"

namespace tprimat::logs {

// Adds to result.experts what the log says of a mixture's routing: who chose the experts, the dispatcher, and of each
// step of the course load, dropped tokens and the router's losses. The model's shape must be known: Megatron-LM prints
// the mean of the layers' losses without their coefficient. What is there already stays.
void fill_experts(RunResult& result, const LoggedFacts& facts, const std::map<std::string, std::string>& settings,
                  const Course& course);

inline constexpr std::string_view k_no_sparse_mfu = "no MFU of this mixture of experts: ";

// Warns why a mixture of experts whose FLOPs are known has no MFU. The result must be summarised already.
void explain_missing_mfu(RunResult& result);

}  // namespace tprimat::logs
