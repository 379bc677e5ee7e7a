#pragma once

#include <optional>
#include <vector>

#include "result/run_result.h"
#include "run/telemetry_report.h"

namespace tprimat::suite {

// Of each entry of step_times the time in which its step certainly ran; nothing where that is not known.
using StepWindows = std::vector<std::optional<TimeWindow>>;

// When a step ended by some clock, and how far the clock may be off: the true end lies between `end - late` and `end +
// early`.
struct StepEnd {
  double end = 0.0, late = 0.0, early = 0.0;
};

// What remains of a step of so many seconds whatever its true end.
std::optional<TimeWindow> certain_window(const StepEnd& end, double seconds);

// Of a log with time stamps, which may be whole seconds. None for steps whose times overlap: their stamps tell when
// they were printed and not when they ran.
StepWindows step_windows(const RunResult& result);

// Forgets windows that overlap a neighbour by more than a tenth.
void drop_overlapping(StepWindows& windows);

// What the sensors said in each window. On GPU platforms the devices are the GPUs, on cpu the machine; `threads` where
// the load of the machine was watched. A figure that fewer than one step in twenty has is left out, and nothing is
// given where all are.
std::optional<StepTelemetry> measure_steps(const std::vector<SensorTrace>& traces, const StepWindows& windows,
                                           Platform platform, const std::optional<ThreadCounts>& threads);

}  // namespace tprimat::suite
