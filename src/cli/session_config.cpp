#include "cli/session_config.h"

namespace tprimat::cli {

suite::LoadedExperiment load_session_config(const Session& session) {
  suite::ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  sources.environment = suite::current_environment();
  return suite::load_experiment(sources);
}

suite::Experiment load_session_experiment(const Session& session) { return load_session_config(session).experiment; }

}  // namespace tprimat::cli
