#pragma once

#include <string>

#include "result/step_record.h"
#include "spec/train_spec.h"

namespace tprimat {

// One line per step in the form of Megatron-LM's training log, so that the tools people have can read it.
std::string render_log_line(const StepRecord& record, const TrainSpec& spec);

// What follows a step with an evaluation.
std::string render_validation_line(const StepRecord& record);

}  // namespace tprimat
