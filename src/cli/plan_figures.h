#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// "8", "8,16,64", "8..16384" (8, 16, 32 and so on): ascending, each once. Throws Error for anything else.
std::vector<int64_t> parse_counts(const std::vector<std::string>& words, const std::string& option);

// "15T", "300B", "1.5e13". Throws Error for anything else and for what is not above 0.
double parse_tokens(const std::string& text, const std::string& option);

// "2.5", or "H100=2.5": a price for every GPU or for one. Throws Error for anything else and for what is not above 0.
struct StatedPrice {
  std::string gpu;  // as written; empty: every one
  double usd_per_gpu_hour = 0;
};
StatedPrice parse_price(const std::string& text, const std::string& option);

}  // namespace tprimat
