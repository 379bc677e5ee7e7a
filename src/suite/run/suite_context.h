#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/trainer_program.h"
#include "planner/parameters.h"
#include "process/process.h"
#include "result/run_result.h"
#include "run/hang_watch.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

// Of this processor, by precision and threads; nothing where it has no such products.
using MeasuredPeaks = std::map<std::pair<Precision, int64_t>, std::optional<MeasuredPeak>>;
struct PlannedRun;

// The environment of a suite. Tests replace it with fakes.
struct SuiteContext {
  ProcessRunner& processes;
  MachineFacts machine;
  std::vector<std::shared_ptr<const GpuLibrary>> gpu_libraries;
  // measure_cpu_peak, used where no catalogue states a peak.
  std::function<std::optional<MeasuredPeak>(Precision precision, int64_t threads)> measure_peak;
  std::function<int()> interrupts;               // requests to stop so far
  std::map<std::string, std::string> libraries;  // "onednn" -> "2.7.2": versions built in, for the record
  MeasuredPeaks measured_peaks = {};             // before the first run
  // What `tprimat doctor` finds on this machine just before a run starts here; absent: nothing is examined.
  std::function<DoctorReport(const PlannedRun& run)> examine = {};
};

// `docker stop` gives 10 s before it kills, and Slurm's KillWait is 30 s: leftover processes must have ended and the
// result must be written by then.
inline constexpr double k_grace_seconds = 5.0;

struct SuiteOptions {
  bool resume = false;
  std::optional<double> time_limit_seconds;  // of one run
  double grace_seconds = k_grace_seconds;    // between SIGTERM and SIGKILL
  int kept_open = -1;                        // descriptor that stays open as long as any process of a run's tree exists
  HangLimits hang;                           // when a run without steps is ended
  double cool_down_seconds = 0.0;            // pause between two runs
  int64_t retries = 0;                       // how often a failed run is tried again
  std::optional<int64_t> fixed_warmup_steps;
  planner::PlannerSettings planner;  // for the predictions stored in results
};

}  // namespace tprimat::suite
