#pragma once

#include <optional>
#include <string>

#include "planner/search.h"
#include "text/fields.h"

namespace tprimat::planner {

// What the speed of a mixture of experts rests on beside its layout.
struct PlanTuning {
  Graphs graphs = Graphs::none;
  bool overlaps_experts = false, narrow_attention = false;
  double moment_bytes = 4, gradient_bytes = 4;
  bool tuned = false;        // by tune()
  bool has_recipes = false;  // tune() would have something to set

  static constexpr auto fields() {
    using T = PlanTuning;
    return field_list(field("graphs", &T::graphs, "CUDA graphs: none, parts of layers or whole steps"),
                      field("expert_overlap", &T::overlaps_experts,
                            "exchanges of tokens hide behind another micro-batch, in the fastest layout"),
                      field("fp8_attention", &T::narrow_attention, "the attention core is in FP8"),
                      field("moment_bytes", &T::moment_bytes, "of each of Adam's moments"),
                      field("gradient_bytes", &T::gradient_bytes, "of a summed gradient"),
                      field("tuned", &T::tuned, "set as published recipes set them"));
  }
};

// Nothing for a dense model.
std::optional<PlanTuning> describe_tuning(const Workload& fastest, const PlanRequest& request);

// "  tuned     no: planned without CUDA graphs, overlapped exchanges and 16-bit moments and gradients; ..."
std::string render_tuning(const PlanTuning& tuning);

// Whether Megatron-Bridge has performance recipes for this program and GPU.
bool has_recipes(const PlanRequest& request);

// Sets what those recipes set: CUDA graphs, of whole steps with MX scaling on Blackwell and else of parts of layers;
// overlapped exchanges; 16-bit moments and gradients; FP8 attention where the model's recipes have it; and HybridEP
// unless another dispatcher is stated.
void tune(PlanRequest& request);

// As Megatron-Core asks: experts on other ranks, no full recomputation, and in a pipeline several chunks per rank.
bool can_overlap_experts(const Layout& layout);

}  // namespace tprimat::planner
