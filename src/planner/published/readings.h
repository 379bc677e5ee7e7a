#pragma once

#include <string>
#include <vector>

#include "published/row_inputs.h"

namespace tprimat::planner {

// One way to count the FLOPs that a token costs.
struct FlopReading {
  Bounds flops_per_token;  // a point, except where the source does not say how long its packed sequences were
  std::string convention;  // "full", "causal", "megatron", "megatron-bridge", "6n", "6n+full", and with recomputation
                           // "full, layers again" ...
  std::vector<std::string> deviations;
};

// A deviation is a named way in which a source counts otherwise than its row and our formulas say. Each is an
// arithmetic rule: it explains a figure only when the figure follows within what its digits leave open.
struct DeviationRule {
  std::string_view name;
  std::string_view meaning;
};
const std::vector<DeviationRule>& deviation_rules();

// More deviations than this explain anything.
constexpr size_t k_max_deviations = 3;

// Model FLOPs by every convention (MFU), fewest deviations first.
std::vector<FlopReading> model_readings(const RowInputs& inputs, const SequenceChoice& sequence);

// FLOPs that the hardware does, by every convention (HFU): the model's where nothing is recomputed.
std::vector<FlopReading> hardware_readings(const RowInputs& inputs, const SequenceChoice& sequence);

}  // namespace tprimat::planner
