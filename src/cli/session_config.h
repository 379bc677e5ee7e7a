#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/session.h"
#include "config/load.h"
#include "run/gpu_default.h"

namespace tprimat::cli {

// The configuration that --config, --set and the environment name, without a message.
suite::ConfigSources config_sources(const Session& session);

// The built-in default of a machine with GPUs, where it is in force.
struct GpuSession {
  suite::DefaultGpus gpus;
  suite::GpuDefault chosen;
};

// Nothing on a machine without GPUs, and where the environment hides them, with a warning.
std::optional<GpuSession> choose_gpu_session(const MachineFacts& machine, const suite::ConfigSources& sources);

// Without a file, on a machine with GPUs: that default takes the place of the built-in one, unless `platform` is
// another.
std::optional<GpuSession> use_gpu_default(suite::ConfigSources& sources, const MachineFacts& machine,
                                          std::optional<Platform> platform);

// What was chosen and why, and how long the plan is expected to take: two to four sentences.
std::vector<std::string> describe_choice(const GpuSession& session, const suite::SuitePlan& plan,
                                         const planner::ParameterSet& parameters);
// The same in every run of the plan, for its result.
void state_choice(const std::optional<GpuSession>& session, suite::SuitePlan& plan,
                  const planner::ParameterSet& parameters);

suite::LoadedExperiment load_session_config(const Session& session, std::optional<Platform> platform = std::nullopt);
suite::Experiment load_session_experiment(const Session& session);

// Where the results are unless a folder is named: benchmarking.output.directory. A configuration that cannot be read is
// an error where --config or --set names it, else a warning; CONFIG_OUTPUT_DIR or ./output then holds.
std::string results_folder(const Session& session);

}  // namespace tprimat::cli
