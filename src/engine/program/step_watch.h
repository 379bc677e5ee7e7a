#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "result/step_record.h"
#include "train/engine.h"
#include "train/op_report.h"
#include "train/op_trace.h"

namespace tprimat::engine {

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
// profiler; every rank does the same, and rank 0 writes its own trace.
class StepTrace {
 public:
  // Throws Error where the window does not lie in the training, or the trace cannot be written.
  StepTrace(Engine& engine, const Backend& backend, const TrainSpec& spec, int64_t first_step);
  void note(int64_t step);

 private:
  void begin();
  void finish();

  Engine& engine_;
  const Backend& backend_;
  std::optional<OpTraceRequest> request_;
  OpClock clock_;
  std::vector<StepSpan> steps_;
  SteadyClock::time_point step_begin_;
};

}  // namespace tprimat::engine
