#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "extract/read_log.h"
#include "launch/launch_plan.h"
#include "result/kinds.h"
#include "run/reporters.h"
#include "run/suite_context.h"
#include "telemetry/sampler.h"
#include "telemetry/sensors.h"

namespace tprimat::suite {

// The record of one finished training.
struct TrainingTrace {
  std::string timestamp;  // of the start, UTC
  ExitReason exit;
  std::optional<std::string> problem;  // why it could not start or its log could not be written, as a sentence
  FailureKind problem_kind = FailureKind::error;
  std::vector<StepRecord> steps;     // as they came
  int64_t unreadable_lines = 0;      // in the file of step records
  std::optional<logs::ReadLog> log;  // where the steps are from the log: all that it states
  std::vector<SensorTrace> sensors;
  std::optional<std::string> hung;      // why we stopped it as hung, as a sentence
  std::optional<int64_t> log_bytes;     // of its log, when we decided so
  std::vector<std::string> damage;      // damage to its files, as sentences
  std::vector<std::string> neighbours;  // other processes on its GPUs, as sentences
  bool memory_kill = false;             // the kernel killed a process meanwhile because memory ran out
};

// Starts the run, follows it to its end and stops it on request. Never throws Error: problems are in the trace, with
// the steps so far.
TrainingTrace follow_training(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around,
                              Reporter& reporter);

// The sensors that can observe the run: none where its ranks are on other machines, and no process tree where a daemon
// of this one started them.
std::vector<std::unique_ptr<Sensor>> open_sensors_for(const LaunchPlan& plan, const WatchRequest& request);

// Ends ranks that outlive their command, as in a job or a container, after that command was stopped. Never throws
// Error: failures are logged.
void end_outside_ranks(const LaunchPlan& plan, const SuiteContext& around);

}  // namespace tprimat::suite
