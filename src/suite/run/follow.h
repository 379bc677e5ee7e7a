#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch_plan.h"
#include "result/kinds.h"
#include "run/reporters.h"
#include "run/suite_context.h"
#include "telemetry/sampler.h"
#include "telemetry/sensors.h"

namespace tprimat::suite {

// Everything that is known of one training once it is over.
struct TrainingTrace {
  std::string timestamp;  // of the start, UTC
  ExitReason exit;
  std::optional<std::string> problem;  // it could not be started, or its log could not be written: in a sentence
  FailureKind problem_kind = FailureKind::error;
  std::vector<StepRecord> steps;  // as they came
  int64_t unreadable_lines = 0;   // in the file of step records
  std::vector<SensorTrace> sensors;
  std::optional<std::string> hung;      // we stopped it because no step came any more: in a sentence
  std::optional<int64_t> log_bytes;     // of its log, when we decided so
  std::vector<std::string> damage;      // what befell its files, in sentences
  std::vector<std::string> neighbours;  // other processes on its GPUs, in sentences
  bool memory_kill = false;             // meanwhile the kernel killed some process because memory ran out
};

// Starts the run, follows it to its end and stops it when asked. Never throws Error: whatever goes wrong is in the
// trace, with the steps so far.
TrainingTrace follow_training(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around,
                              Reporter& reporter);

// The sensors that say something of the run: none where its ranks are on other machines, and no process tree where a
// daemon of this one started them.
std::vector<std::unique_ptr<Sensor>> open_sensors_for(const LaunchPlan& plan, const WatchRequest& request);

// Ends ranks that may outlive the command that asked for them, a job or a container, when that command was stopped.
// Never throws Error: what cannot be ended is said in the log of this program.
void end_outside_ranks(const LaunchPlan& plan, const SuiteContext& around);

}  // namespace tprimat::suite
