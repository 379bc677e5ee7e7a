#pragma once

#include <string>

#include "cli/session.h"
#include "config/experiment.h"
#include "spec/counted_model.h"

namespace tprimat {

// The experiment that --config, --set and the environment name, without a message.
Experiment load_session_experiment(const Session& session);

// A model of the configuration, else of the catalogues. Throws Error at `place` for others.
CountedModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place);

}  // namespace tprimat
