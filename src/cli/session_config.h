#pragma once

#include "command_line/session.h"
#include "config/load.h"

namespace tprimat::cli {

// The configuration that --config, --set and the environment name, without a message.
suite::ConfigSources config_sources(const Session& session);
suite::LoadedExperiment load_session_config(const Session& session);
suite::Experiment load_session_experiment(const Session& session);

// Where the results are unless a folder is named: benchmarking.output.directory. A configuration that cannot be read is
// an error where --config or --set names it, else a warning; CONFIG_OUTPUT_DIR or ./output then holds.
std::string results_folder(const Session& session);

}  // namespace tprimat::cli
