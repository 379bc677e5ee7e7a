#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "result/run_result.h"
#include "trace/trace.h"
#include "why/ledger.h"
#include "why/product_rates.h"

namespace tprimat::results {

// What was found of a side.
struct SideInput {
  std::string label;
  std::vector<std::string> files = {};
  std::vector<logs::Trace> ranks = {};   // one per rank that recorded, read with TraceContent::everything
  std::optional<RunResult> result = {};  // settings, steady steps, telemetry
};

// Throws Error with the reason where the two sides, or a trace and its result, do not belong together, or a trace
// marks no steps.
// `rates`: of single products on B's machine, which the sentence of the products then refers to.
Ledger make_ledger(const SideInput& a, const SideInput& b, std::span<const ProductRate> rates = {});

}  // namespace tprimat::results
