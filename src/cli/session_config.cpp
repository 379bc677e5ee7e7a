#include "cli/session_config.h"

namespace tprimat::cli {

suite::ConfigSources config_sources(const Session& session) {
  suite::ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  sources.environment = suite::current_environment();
  return sources;
}

suite::LoadedExperiment load_session_config(const Session& session) {
  return suite::load_experiment(config_sources(session));
}

suite::Experiment load_session_experiment(const Session& session) { return load_session_config(session).experiment; }

}  // namespace tprimat::cli
