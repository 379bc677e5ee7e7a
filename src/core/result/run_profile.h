#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/kinds.h"
#include "text/fields.h"

namespace tprimat {

// Steps that a run trained after its measured ones under a profiler. They are no part of step_times and of the figures
// derived from them.
struct RunProfile {
  Profiler profiler = Profiler::torch;
  int64_t first_step = 0, last_step = 0;
  std::vector<std::string> files;  // traces, one per rank, relative to the result's folder
  std::vector<double> step_times;  // s
  std::optional<double> step_time_seconds, cost;
  static constexpr auto fields() {
    using P = RunProfile;
    return field_list(
        field("profiler", &P::profiler, "what recorded: torch, own, nsys or rocprofv3"),
        field("first_step", &P::first_step, "first profiled step; all of them follow the measured steps"),
        field("last_step", &P::last_step, "last profiled step"),
        field("files", &P::files, "traces, one per rank in the ranks' order, relative to the folder of this file"),
        field("step_times", &P::step_times, "duration of each profiled step, s; they are not in the other figures"),
        field("step_time_seconds", &P::step_time_seconds, "mean of these, s"),
        field("cost", &P::cost, "what profiling costs a step: step_time_seconds / statistics.mean - 1"));
  }
};

}  // namespace tprimat
