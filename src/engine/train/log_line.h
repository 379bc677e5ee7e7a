#pragma once

#include <string>

#include "ops/kernel_report.h"
#include "result/step_record.h"
#include "spec/train_spec.h"

namespace tprimat::engine {

// One line per step in the form of Megatron-LM's training log, so that the tools people have can read it.
std::string render_log_line(const StepRecord& record, const TrainSpec& spec);

// What follows a step with an evaluation.
std::string render_validation_line(const StepRecord& record);

// What a GPU's operations are made of: "kernels | attention cudnn |"; empty where nothing is to be said.
std::string render_kernel_line(const KernelReport& report);

}  // namespace tprimat::engine
