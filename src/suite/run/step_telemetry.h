#pragma once

#include <optional>
#include <vector>

#include "result/run_result.h"
#include "run/telemetry_report.h"

namespace tprimat::suite {

// For each entry of step_times the time in which its step certainly ran; nothing if unknown.
using StepWindows = std::vector<std::optional<TimeWindow>>;

// The end of a step by some clock, and the clock's error: the true end lies between `end - late` and `end + early`.
struct StepEnd {
  double end = 0.0, late = 0.0, early = 0.0;
};

// The part of a step of so many seconds that is certain for every possible end.
std::optional<TimeWindow> certain_window(const StepEnd& end, double seconds);

// Of a log with time stamps, which may be whole seconds. None for steps whose times overlap: their stamps are times of
// printing.
StepWindows step_windows(const RunResult& result);

// Drops windows that overlap a neighbour by more than a tenth.
void drop_overlapping(StepWindows& windows);

// The sensors' readings in each window. On GPU platforms the devices are the GPUs, on cpu the machine; `threads` if the
// load of the machine was watched. A figure that fewer than one step in twenty has is omitted; without any figure the
// result is empty.
std::optional<StepTelemetry> measure_steps(const std::vector<SensorTrace>& traces, const StepWindows& windows,
                                           Platform platform, const std::optional<ThreadCounts>& threads);

}  // namespace tprimat::suite
