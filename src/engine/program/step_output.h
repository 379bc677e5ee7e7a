#pragma once

#include <optional>
#include <string>

#include "base/files.h"
#include "result/step_record.h"
#include "spec/train_spec.h"
#include "train/engine.h"
#include "train/event_file.h"

namespace tprimat::engine {

// What rank 0 shows of each step: a line, the record file, TensorBoard's events.
class StepOutput {
 public:
  // Records go to the file that the environment's TPRIMAT_STEPS names, events to the folder `tensorboard`; empty: none.
  StepOutput(const TrainSpec& spec, const std::string& tensorboard, int64_t first_step);
  void show(const StepRecord& record);

 private:
  void open_steps_file(const std::string& path, int64_t first_step);
  void write_events(const StepRecord& record);

  const TrainSpec& spec_;
  std::optional<LineWriter> steps_file_;
  std::optional<EventFile> events_;
};

// The implementations that a GPU's operations chose, known after the first step, and their warnings.
class KernelNotes {
 public:
  KernelNotes(KernelReport* report, const Engine& engine, int64_t first_step)
      : report_(report), world_(*engine.ranks().world), first_step_(first_step) {}
  void note(int64_t step);

 private:
  KernelReport* report_;
  Communicator& world_;
  int64_t first_step_;
};

}  // namespace tprimat::engine
