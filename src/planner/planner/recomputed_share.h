#pragma once

#include <vector>

#include "planner/workload.h"

namespace tprimat::planner {

// Products of the repeated modules over those of a mean layer's forward pass.
double share_of_modules(const Workload& workload);

// What Megatron-Core's trainings of sparse models repeat where memory is short: norms, the experts' activation and the
// wide products of latent attention, which take little time. `narrow`: FP8 with one scale per tensor, which cannot
// repeat the first two.
std::vector<RecomputedModule> usual_modules(const ModelSpec& model, bool narrow);

}  // namespace tprimat::planner
