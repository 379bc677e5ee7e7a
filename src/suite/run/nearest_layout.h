#pragma once

#include <functional>
#include <optional>

#include "planner/memory.h"
#include "planner/workload.h"

namespace tprimat::suite {

struct FittingLayout {
  planner::Layout layout;
  double bytes = 0;
};

// The limits of a layout.
struct FitTask {
  double bytes = 0;
  std::function<double(const planner::Workload&)> needs;  // bytes to compare with these
  std::function<bool(const planner::Layout&)> accepts;    // whether the program accepts it
  bool lowers_sharding = false;  // a lower ZeRO stage is a change like any other, and not the last resort
};

// The valid and accepted layout with the same device count and batch that needs at most `bytes` and is nearest to the
// workload's: with the same TP, PP and CP first a smaller micro-batch, then recomputation, then a higher ZeRO stage;
// then other grids, by the factors between their sizes; a lower ZeRO stage only as a last resort. Nothing if none fits.
std::optional<FittingLayout> find_fitting_layout(const planner::Workload& workload, const FitTask& task);

}  // namespace tprimat::suite
