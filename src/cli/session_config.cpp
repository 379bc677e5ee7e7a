#include "cli/session_config.h"

#include "base/error.h"
#include "base/log.h"
#include "config/variables.h"

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

std::string results_folder(const Session& session) {
  const suite::ConfigSources sources = config_sources(session);
  try {
    return suite::load_experiment(sources).experiment.output_directory;
  } catch (const Error& error) {
    if (sources.path || !sources.overrides.empty()) throw;
    const std::string* named = suite::find_variable(sources.environment, "CONFIG_OUTPUT_DIR");
    const std::string folder = named == nullptr ? suite::Experiment().output_directory : *named;
    Problem problem = error.problems().front();
    problem.what = "the configuration cannot be read, so results are expected in " + folder + ": " + problem.what;
    log_warning(to_string(problem));
    return folder;
  }
}

}  // namespace tprimat::cli
