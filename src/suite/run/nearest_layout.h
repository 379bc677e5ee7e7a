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

// What a layout must keep within.
struct FitTask {
  double bytes = 0;
  std::function<double(const planner::Workload&)> needs;  // bytes, to compare with these
  std::function<bool(const planner::Layout&)> accepts;    // whether the program starts with it
};

// The sound and accepted layout of as many devices and the same batch that needs at most `bytes` and is nearest to the
// workload's: with the same TP, PP and CP a smaller micro-batch comes first, then recomputation, then more of ZeRO;
// then other grids, by the factors between their sizes; less of ZeRO where nothing else fits. Nothing where none fits.
std::optional<FittingLayout> find_fitting_layout(const planner::Workload& workload, const FitTask& task);

}  // namespace tprimat::suite
