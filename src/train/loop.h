#pragma once

#include <functional>

#include "result/step_record.h"
#include "spec/train_spec.h"
#include "train/engine.h"

namespace tprimat {

// Called after each step, in order.
using StepSink = std::function<void(const StepRecord&)>;

// Trains from step 1 to spec.steps. A loss or gradient that is not finite ends the training with Error (work_failed)
// that names the step, after the step was recorded.
void run_training(const TrainSpec& spec, Engine& engine, const StepSink& sink);

}  // namespace tprimat
