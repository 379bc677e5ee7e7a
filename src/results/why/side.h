#pragma once

#include <optional>
#include <string>
#include <vector>

#include "why/ledger.h"
#include "why/make_ledger.h"
#include "why/waiting.h"
#include "why/work_rows.h"

namespace tprimat::results {

// One side, ready to be compared: the steps of the rank that stands for it, in seconds of its unprofiled steps.
struct Side {
  LedgerSide facts;
  size_t rank = 0;        // of the input's traces
  StepWork work;          // scaled; without the steps that are outliers
  double typical = 0;     // s, of a step that is no outlier: rows and moments add up to it
  double outliers = 0;    // s per step, by which outliers lengthen the mean
  size_t slow_steps = 0;  // outliers
  std::optional<double> clock_hz;
  std::optional<LateRank> late;
  std::vector<std::string> notes;
};

// Throws Error where the traces are not of the result, or of no run at all.
Side prepare_side(const SideInput& input);

}  // namespace tprimat::results
