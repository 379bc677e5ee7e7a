#pragma once

#include "result/run_result.h"
#include "spec/train_spec.h"

namespace tprimat {

// The facts of a run that its specification states: model, precision, data, training and layout. The suite writes them
// into the result, and verification compares the result with the specification.
void fill_asked_facts(RunResult& result, const TrainSpec& spec);

}  // namespace tprimat
