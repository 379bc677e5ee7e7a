#include "compare/forced_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "spec/tsv_rows.h"

namespace tprimat::results {
namespace {

constexpr std::string_view k_model_zoo = "yanring/Megatron-MoE-ModelZoo, best_practice/qwen3/readme.md at e865051";
constexpr std::string_view k_cards = "NVIDIA-NeMo/Megatron-Bridge, examples/model_verification_cards at 067f987";

// The balanced runs of the last two also overlap the exchange of tokens, or capture the whole iteration as a graph.
constexpr std::array k_pairs = {
    BalancedPair{"Qwen3-235B-A22B", "H100", 256, 16384, "BF16", 295, 237, k_model_zoo},
    BalancedPair{"Qwen3-235B-A22B", "H100", 256, 32768, "BF16", 335, 277, k_model_zoo},
    BalancedPair{"Qwen3-235B-A22B", "H100", 256, 65536, "BF16", 368, 320, k_model_zoo},
    BalancedPair{"Qwen3-235B-A22B", "H100", 256, 131072, "BF16", 389, 357, k_model_zoo},
    BalancedPair{"Nemotron-3.5-Lightning", "GB200", 8, 8192, "BF16", 28750.07, 24404.07, k_cards},
    BalancedPair{"Qwen3-30B-A3B", "H100", 16, 4096, "BF16", 13011.378, 8654.602, k_cards},
    BalancedPair{"Qwen3-30B-A3B", "GB200", 8, 4096, "MXFP8", 40322.898, 21205.047, k_cards},
};

bool is_model(const BalancedPair& pair, const RunResult& run) {
  const std::string wanted = fold_name(std::string(pair.model));
  for (const std::string& name : {run.model_info.name, run.model_info.full_name.value_or("")})
    if (fold_name(name).find(wanted) != std::string::npos) return true;
  return false;
}

std::string format_range(const std::vector<double>& gains) {
  const auto [least, most] = std::ranges::minmax(gains);
  const std::string low = fmt::format("{:.0f}", least * 100), high = fmt::format("{:.0f}", most * 100);
  return low == high ? low + " %" : fmt::format("{} to {} %", low, high);
}

}  // namespace

std::span<const BalancedPair> balanced_pairs() { return k_pairs; }

std::string describe_published_gain(const RunResult& run) {
  std::vector<double> all, of_model;
  for (const BalancedPair& pair : k_pairs) {
    all.push_back(pair.gain());
    if (is_model(pair, run)) of_model.push_back(pair.gain());
  }
  const std::string more = of_model.empty() ? "" : fmt::format(" ({} for this model)", format_range(of_model));
  return fmt::format("in {} published pairs forced balance was {} faster{}", all.size(), format_range(all), more);
}

}  // namespace tprimat::results
