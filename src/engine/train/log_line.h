#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
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

// The warnings of a GPU's operations, which this takes out of the report, as this rank is to say them: what every rank
// would say alike, rank 0 says alone. Collective.
std::vector<std::string> take_shared_warnings(KernelReport& report, Communicator& world);
// As of this rank alone.
std::vector<std::string> take_own_warnings(KernelReport& report, const Communicator& world);

}  // namespace tprimat::engine
