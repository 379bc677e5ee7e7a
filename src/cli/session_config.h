#pragma once

#include "command_line/session.h"
#include "config/load.h"

namespace tprimat::cli {

// The configuration that --config, --set and the environment name, without a message.
suite::ConfigSources config_sources(const Session& session);
suite::LoadedExperiment load_session_config(const Session& session);
suite::Experiment load_session_experiment(const Session& session);

}  // namespace tprimat::cli
