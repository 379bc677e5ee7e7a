#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/experiment.h"
#include "launch/frameworks.h"
#include "launch/launch_plan.h"
#include "planner/parameters.h"
#include "run/profile_window.h"
#include "spec/config_hash.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

struct PlannedRun;

// The request beyond the configuration. Empty lists: as configured.
struct SuiteRequest {
  std::optional<Platform> platform;  // nothing: this machine's own
  std::vector<FrameworkChoice> frameworks;
  bool all_frameworks = false;  // every one that runs on the platform
  std::vector<std::string> models, strategies;
  std::optional<std::string> dataset;
  std::optional<std::string> load;          // checkpoints that the measured runs go on from
  std::string own_program;                  // path of this program
  ProgramFiles program_files = {};          // what it needs in a container
  Presence presence = Presence::installed;  // any: the plan is only shown
  std::optional<ProfileRequest> profile;    // profiled runs, one of each training, instead of measured ones
  planner::PlannerSettings planner = {};    // for memory, where experiment.adapt is nearest
  // Set: what each framework trains of a model instead of the layouts of strategies. Takes the training on all devices,
  // without a layout and a launch; returns it in layouts, each with a strategy's name of its own. Throws Error.
  std::function<std::vector<TrainSpec>(const PlannedRun& training)> choose_layouts = {};
};

// One training process group, from launch to exit.
struct PlannedRun {
  Platform platform = Platform::cpu;
  PlatformSetup setup;
  Framework framework = Framework::native;
  std::optional<std::string> installation, framework_version;  // its label, where one was chosen
  TrainSpec spec;
  int64_t run = 1, runs = 1;  // number and count of repetitions
  LaunchFacts launch_facts;
  std::string config_hash;               // of spec and launch_facts
  std::optional<ProfileWindow> profile;  // set: not a measurement
  std::string unprofiled = {};  // why no steps follow the measured ones under a profiler, where some were asked for
  LaunchRequest request;        // that became the plan
  LaunchPlan plan;
  std::vector<std::string> default_choice = {};  // why the default for this machine's GPUs chose it; empty: it did not
};

// "mega", "mega@a"
std::string name_framework(const PlannedRun& run);
// "native gpt on cpu, strategy single"
std::string name_training(const PlannedRun& run);
// The same and ", run 2 of 3"
std::string describe(const PlannedRun& run);

struct SuitePlan {
  std::vector<PlannedRun> runs;      // in the order in which they start
  std::vector<Problem> unavailable;  // frameworks that cannot run this or are missing, if others can run
  std::vector<Problem> skipped;      // where all frameworks were asked for: those that are not installed
};

// The place of errors about the platform where the request names none.
inline constexpr const char* k_automatic_platform = "--platform auto";

// Pure: depends on its arguments alone and writes nothing. Throws Error when the request contradicts the configuration
// or when no requested framework can run (ExitStatus::missing_component, or usage where none supports the request).
SuitePlan plan_suite(const Experiment& experiment, const SuiteRequest& request, const MachineFacts& machine);

}  // namespace tprimat::suite
