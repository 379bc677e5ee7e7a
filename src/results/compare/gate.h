#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result/metrics.h"

namespace tprimat::results {

enum class GateOperator { less, less_or_equal, greater, greater_or_equal };
constexpr auto enum_table(GateOperator) {
  return std::to_array<std::pair<GateOperator, std::string_view>>({{GateOperator::less, "<"},
                                                                   {GateOperator::less_or_equal, "<="},
                                                                   {GateOperator::greater, ">"},
                                                                   {GateOperator::greater_or_equal, ">="}});
}

// What --fail-if says: a change of `metric` against the baseline in this region is a failure.
struct Gate {
  std::string text;  // as it was given
  const Metric* metric = nullptr;
  GateOperator compare = GateOperator::less;
  bool relative = false;  // the change as a share of the baseline; otherwise in the metric's unit
  double threshold = 0;   // -0.03 for "-3%"
};

enum class GateOutcome {
  passed,          // the whole interval of the change lies outside the region that fails
  failed,          // the whole interval lies in it
  inconclusive,    // the interval straddles the threshold, or there is none where there should be
  not_comparable,  // not the same work, or not the same kind of figure
  invalid          // a result of the pair is not a complete, valid one
};
constexpr auto enum_table(GateOutcome) {
  return std::to_array<std::pair<GateOutcome, std::string_view>>({{GateOutcome::passed, "passed"},
                                                                  {GateOutcome::failed, "failed"},
                                                                  {GateOutcome::inconclusive, "inconclusive"},
                                                                  {GateOutcome::not_comparable, "not comparable"},
                                                                  {GateOutcome::invalid, "invalid"}});
}

// One gate on one subject.
struct GateResult {
  Gate gate = {};
  std::string model = {}, baseline = {}, subject = {};  // model and labels
  std::optional<Estimate> before = {}, after = {};      // the figures of both sides, where they are known
  std::optional<Estimate> change = {};  // in the terms of the gate; without an interval: compared as values
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string reason = {};  // why this outcome, in words
};

}  // namespace tprimat::results
