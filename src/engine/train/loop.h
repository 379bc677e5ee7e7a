#pragma once

#include <functional>

#include "base/error.h"
#include "result/step_record.h"
#include "spec/train_spec.h"
#include "train/engine.h"

namespace tprimat::engine {

// Called after each step, in order, on every rank.
using StepSink = std::function<void(const StepRecord&)>;

// What a training does between its steps.
struct TrainingHooks {
  StepSink step;
  // What people should read: a skipped update, a spike. May be empty.
  std::function<void(const std::string&)> note;
  // After each step of the training, with the engine's state that of `step`: saving. May be empty.
  std::function<void(int64_t step)> after_step;
  // Steps after the training's last one, up to this: no part of the training, as profiled ones. No evaluation follows
  // them, and no anomaly ends them. 0: none.
  int64_t last_extra_step = 0;
  StepSink extra_step = {};  // called instead of `step` for these
};

// A training ended by an anomaly (AnomalySpec), on all ranks after the same step.
class TrainingStopped : public Error {
 public:
  explicit TrainingStopped(Problem problem) : Error(std::move(problem), ExitStatus::work_failed) {}
};

// Trains from `first_step` to spec.steps, then hooks.last_extra_step. A loss or gradient that is not finite ends the
// training with TrainingStopped that names the step, after the step was recorded, unless spec.anomalies says to go on.
void run_training(const TrainSpec& spec, Engine& engine, int64_t first_step, const TrainingHooks& hooks);
void run_training(const TrainSpec& spec, Engine& engine, const StepSink& sink);

}  // namespace tprimat::engine
