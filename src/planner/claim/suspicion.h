#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat::planner {

// Mistakes that make a figure larger (or smaller) than what was measured.
enum class Mistake {
  sparse_peak,          // a peak with structured sparsity, twice the dense one
  recompute_counted,    // what is computed twice counts as the model's FLOPs
  other_convention,     // counted by a convention that gives more FLOPs than the stated one
  experts_dense,        // every token counts all experts
  aggregate_for_gpu,    // the whole job's rate as one GPU's
  node_for_gpu,         // a node's rate as one GPU's
  double_length,        // tokens counted with twice the sequence length
  fp8_as_bf16,          // measured in FP8
  adapters_as_full,     // adapters or a part of the weights are trained
  balanced_routing,     // each expert was forced to take as many tokens
  fraction_as_percent,  // 0.45 for 45 %
  divided_twice,        // a GPU's rate, divided by the number of GPUs or of a node's GPUs
  in_thousands,         // thousands of tokens/s
  unexplained           // figures contradict each other by a factor of no known mistake
};
constexpr auto enum_table(Mistake) {
  return std::to_array<std::pair<Mistake, std::string_view>>({{Mistake::sparse_peak, "sparse_peak"},
                                                              {Mistake::recompute_counted, "recompute_counted"},
                                                              {Mistake::other_convention, "other_convention"},
                                                              {Mistake::experts_dense, "experts_dense"},
                                                              {Mistake::aggregate_for_gpu, "aggregate_for_gpu"},
                                                              {Mistake::node_for_gpu, "node_for_gpu"},
                                                              {Mistake::double_length, "double_length"},
                                                              {Mistake::fp8_as_bf16, "fp8_as_bf16"},
                                                              {Mistake::adapters_as_full, "adapters_as_full"},
                                                              {Mistake::balanced_routing, "balanced_routing"},
                                                              {Mistake::fraction_as_percent, "fraction_as_percent"},
                                                              {Mistake::divided_twice, "divided_twice"},
                                                              {Mistake::in_thousands, "in_thousands"},
                                                              {Mistake::unexplained, "unexplained"}});
}

// One explanation of a figure that is off, and the figure that it would leave.
struct Suspicion {
  Mistake mistake = Mistake::sparse_peak;
  std::string sentence;                           // "TFLOP/s of a peak with sparsity: half of it would be 430 TFLOP/s"
  double factor = 1;                              // stated figure / what was measured
  double tokens_per_second_per_gpu = 0, mfu = 0;  // without the mistake; causal
  double likelihood = 0;                          // among all explanations and the claim being right, 0 to 1
  bool from_contradiction = false;                // figures of the claim show it by arithmetic

  static constexpr auto fields() {
    using S = Suspicion;
    return field_list(field("mistake", &S::mistake, "name of the mistake: docs/claim.md"),
                      field("sentence", &S::sentence, "what it means here"),
                      field("factor", &S::factor, "stated figure / figure without the mistake"),
                      field("tokens_per_second_per_gpu", &S::tokens_per_second_per_gpu, "without the mistake"),
                      field("mfu", &S::mfu, "without the mistake: causal model FLOPs over the dense peak"),
                      field("likelihood", &S::likelihood, "weight among the explanations and a right claim, 0 to 1"),
                      field("from_contradiction", &S::from_contradiction,
                            "two figures of the claim contradict each other by this factor"));
  }
};

}  // namespace tprimat::planner
