#pragma once

#include <string_view>
#include <vector>

#include "extract/extracted_log.h"

// Names that trackers (TensorBoard, Weights & Biases, Lightning, Hugging Face, Megatron-LM, torchtitan) give to the
// figures of a step. Names alone identify them, so a name that means different things in different tools is omitted:
// "throughput", "mfu", "iter_time".
namespace tprimat::logs {

struct StepMetric {
  Figure ExtractedStep::*member;
  double factor;                        // to our unit
  std::vector<std::string_view> names;  // lower case
};

const StepMetric* find_step_metric(std::string_view name);  // null for an unknown name
bool is_evaluation_loss(std::string_view name);
bool is_step_name(std::string_view name);   // of the column that counts the steps
bool is_clock_name(std::string_view name);  // seconds since 1970

// Sets the value; a time counts as printed.
void set_step_metric(ExtractedStep& record, const StepMetric& metric, double value);

}  // namespace tprimat::logs
