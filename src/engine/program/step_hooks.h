#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "result/step_record.h"
#include "spec/train_spec.h"
#include "train/engine.h"
#include "train/event_file.h"
#include "train/op_report.h"
#include "train/op_trace.h"

namespace tprimat::engine {

// What rank 0 shows of each step: a line, the record file, TensorBoard's events.
class StepOutput {
 public:
  // Records go to the file that the environment's TPRIMAT_STEPS names, events to the folder `tensorboard`; empty: none.
  StepOutput(const TrainSpec& spec, const std::string& tensorboard, int64_t first_step);
  void show(const StepRecord& record);
  // A step after the training's last one: its record goes to profiled_steps.jsonl beside the others' file.
  void show_extra(const StepRecord& record);

 private:
  void open_steps_file(const std::string& path, int64_t first_step);
  void write_events(const StepRecord& record);

  const TrainSpec& spec_;
  std::optional<LineWriter> steps_file_, extra_file_;
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

// `tprimat train --profile`: where the time of steps goes. The first step is excluded. On a GPU the first half of the
// others runs without a clock, so that the report shows the cost of timing; the step that records the work again, with
// events, is excluded too.
class StepProfile {
 public:
  StepProfile(Engine& engine, const Backend& backend, const TrainSpec& spec, int64_t first_step);
  void note(const StepRecord& record);
  // Measures the peak of the processor or the GPU first; the engine may be gone.
  void print() const;

 private:
  std::optional<double> measure_peak() const;

  Engine& engine_;
  const Backend& backend_;
  const TrainSpec& spec_;
  int64_t first_plain_, first_watched_, first_timed_;  // steps
  int64_t plain_steps_ = 0, steps_ = 0;
  double plain_seconds_ = 0, seconds_ = 0;
  OpClock clock_;
};

// What TPRIMAT_PROFILE asks for: a trace of the trainer's own clock of some steps, or a window for the vendor's
// profiler. Every rank does the same; who writes a trace, its path says. A window after the training's last step is
// trained besides. The clock already runs in the step before: a GPU's work is recorded anew, with events.
class StepTrace {
 public:
  // Throws Error where the window lies partly in the training or before it, or the trace cannot be written.
  StepTrace(Engine& engine, const Backend& backend, const TrainSpec& spec, int64_t first_step);
  void note(const StepRecord& record);  // a step has just ended
  void finish(int64_t step);            // writes the trace where this was the last of the window
  void note_checkpoint(SteadyClock::time_point begin);
  int64_t last_step() const { return request_ ? request_->last_step : 0; }

 private:
  void begin_before(int64_t step);
  void write() const;
  bool writes() const { return request_->is_for_every_rank() || engine_.ranks().world->rank() == 0; }
  bool is_extra() const { return request_->first_step > spec_steps_; }

  Engine& engine_;
  const Backend& backend_;
  const int64_t spec_steps_, begin_;  // the last step of the training, the first of this process
  std::optional<OpTraceRequest> request_;
  OpClock clock_;
  std::vector<StepSpan> steps_;
  std::vector<OpEvent> checkpoints_;
};

}  // namespace tprimat::engine
