#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/machine.h"

namespace tprimat::planner {

// "8,16" and "64": 8, 16, 64. Throws Error for a list with an empty place ("8,").
std::vector<std::string> split_lists(const std::vector<std::string>& lists, const std::string& option);

// "8", "8,16,64", "8..16384" (8, 16, 32 and so on): ascending, each once. Throws Error for anything else.
// The last number of a range that doubling does not reach goes into `left_out`, as a sentence.
std::vector<int64_t> parse_counts(const std::vector<std::string>& words, const std::string& option,
                                  std::vector<std::string>& left_out);

// "15T", "300B", "1.5e13". Throws Error for anything else and for values not above 0.
double parse_tokens(const std::string& text, const std::string& option);

// "2.5", or "H100=2.5": a price for every GPU or for one. Throws Error for anything else and for values not above 0.
struct StatedPrice {
  std::string gpu;  // as written; empty: every one
  double usd_per_gpu_hour = 0;
};
StatedPrice parse_price(const std::string& text, const std::string& option);

// Throws Error for what `tprimat plan` does not predict: fp32 of a GPU, say.
PlanPrecision parse_plan_precision(const std::string& text, const std::string& option, bool of_processor);

}  // namespace tprimat::planner
