#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/flop_breakdown.h"
#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat::planner {

// Ways to count the FLOPs of a token that people report MFU by. The first four count the model; the others count more
// than a token needs, and flatter.
enum class Convention {
  full,           // PaLM, arXiv 2204.02311: attention to the whole sequence
  causal,         // Megatron-LM: half of that attention
  six_n,          // 6 x parameters that a token passes
  six_n_matmul,   // the same without embedding, norms and biases
  experts_dense,  // full, as if each token passed all experts
  six_n_total,    // 6 x all parameters of a mixture of experts
  recompute_selective,
  recompute_full  // causal, with what is computed twice (HFU)
};
constexpr auto enum_table(Convention) {
  return std::to_array<std::pair<Convention, std::string_view>>(
      {{Convention::full, "full"},
       {Convention::causal, "causal"},
       {Convention::six_n, "6n"},
       {Convention::six_n_matmul, "6n_matmul"},
       {Convention::experts_dense, "experts_dense"},
       {Convention::six_n_total, "6n_total"},
       {Convention::recompute_selective, "recompute_selective"},
       {Convention::recompute_full, "recompute_full"}});
}

struct CountedFlops {
  Convention convention = Convention::full;
  double flops_per_token = 0;
};

// What a claim's FLOPs depend on. Of adapters, frozen weights take 4 FLOPs a token instead of 6.
struct CountedWork {
  ModelSpec shape;
  int64_t sequence_length = 0;
  bool trains_adapters = false;
};

// All conventions that differ for the model: those of experts only where it has some.
std::vector<CountedFlops> count_conventions(const CountedWork& work);
double flops_by(const CountedWork& work, Convention convention);

// False of conventions that count more than a token's model FLOPs.
bool counts_model_alone(Convention convention);

std::string_view meaning_of(Convention convention);  // "attention to the whole sequence (PaLM)"

}  // namespace tprimat::planner
