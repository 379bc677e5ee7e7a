#pragma once

#include <optional>

#include "planner/memory.h"
#include "planner/workload.h"

namespace tprimat {

struct FittingLayout {
  Layout layout;
  double bytes = 0;
};

// The sound layout of as many devices and the same batch that needs at most `bytes` and is nearest to the workload's:
// with the same TP, PP and CP a smaller micro-batch comes first, then recomputation, then ZeRO; then other grids, by
// the factors between their sizes. Nothing where none fits.
std::optional<FittingLayout> find_fitting_layout(const Workload& workload, const ParameterSet& parameters,
                                                 double bytes);

}  // namespace tprimat
