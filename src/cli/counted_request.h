#pragma once

#include <string>

#include "cli/session.h"
#include "config/load.h"
#include "spec/counted_model.h"

namespace tprimat {

// The configuration that --config, --set and the environment name, without a message.
LoadedExperiment load_session_config(const Session& session);
Experiment load_session_experiment(const Session& session);

// A model of the configuration, else of the catalogues. Throws Error at `place` for others.
CountedModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place);

}  // namespace tprimat
