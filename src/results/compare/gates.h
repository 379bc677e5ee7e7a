#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat::results {

// METRIC OPERATOR VALUE[%], blanks optional: "tokens_per_second < -3%", "peak_memory_allocated_gb>0.5". Throws Error
// (usage) with the column of the fault.
Gate parse_gate(const std::string& text);

// All gates, or Error with all problems.
std::vector<Gate> parse_gates(const std::vector<std::string>& texts);

// Tests every gate on every pair with a baseline (ModelGroup::has_baseline). Throws Error where there is no such pair:
// a gate without a test must not pass.
std::vector<GateResult> judge_gates(const Comparison& comparison, const std::vector<Gate>& gates);

// gate_failed before work_failed, not_comparable, inconclusive, done.
ExitStatus gates_status(const std::vector<GateResult>& results);

// "failed: tokens_per_second < -3%: NVIDIA NeMo r2 against NVIDIA NeMo r1: 13 425 -> 12 800 tokens/s, a change of ..."
std::string describe_gate(const GateResult& result);

// How a metric of the subject differs from the reference's.
struct Change {
  std::optional<Estimate> before, after;
  std::optional<Estimate> difference;  // after - before, in the metric's unit
  std::optional<Estimate> share;       // after / before - 1; absent where `before` is not positive
  bool follows_from_steps = false;     // the figure is made of the mean step time, so it should have an interval
};

// Figures that follow from the mean step time take the interval of the pair's ratio (tokens/s per device), as a share
// and as a difference. Any other metric: from the two figures' own intervals (stats/mean_estimate.h), and without an
// interval where a side has none.
Change measure_change(const ModelGroup& group, const Pair& pair, const Metric& metric);

}  // namespace tprimat::results
