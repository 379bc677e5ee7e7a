#include "cli/session_config.h"

#include <fmt/format.h>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "config/variables.h"
#include "telemetry/gpu_libraries.h"
#include "text/words.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_default_name = "built-in default for GPUs";

// A GPU whose driver is broken must not pass for a machine without one, which a library that sees none is.
void warn_of_refused_libraries() {
  for (const std::string& refusal : find_gpu_libraries().refused)
    if (!refusal.ends_with("sees no GPU"))
      log_warning(fmt::format("{}, so the built-in default trains on the processor", refusal));
}

// Whether an override is of this key, in whatever spelling; what is no key the reader of the configuration reports.
bool is_of_key(const std::string& text, const std::string& key) {
  try {
    return text.find(".num_gpus=") != std::string::npos &&
           suite::canonical_key_path(text.substr(0, text.find('='))) == key;
  } catch (const Error&) {
    return false;
  }
}

// A count that an option or the environment states, so that the batch and the models are chosen for it.
std::optional<int64_t> find_stated_count(const suite::ConfigSources& sources, Platform platform) {
  const std::string name = fmt::format("hardware.platforms.{}.num_gpus", enum_name(platform));
  std::optional<int64_t> count;
  const auto take = [&](const std::string& text) {
    if (const auto value = parse_number<int64_t>(text)) count = value;
  };
  for (const suite::ConfigVariable& variable : suite::named_variables())
    if (const std::string* text = suite::find_variable(sources.environment, variable.name);
        variable.path == name && text)
      take(*text);
  for (const std::string& each : sources.overrides)
    if (is_of_key(each, name)) take(each.substr(each.find('=') + 1));
  return count;
}

}  // namespace

suite::ConfigSources config_sources(const Session& session) {
  suite::ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  sources.environment = suite::current_environment();
  return sources;
}

std::optional<GpuSession> choose_gpu_session(const MachineFacts& machine, const suite::ConfigSources& sources) {
  if (machine.platform == Platform::cpu) return std::nullopt;
  auto gpus = suite::find_default_gpus(machine, read_environment);
  if (!gpus) {
    log_warning(fmt::format(
        "the environment hides this machine's {} GPUs ({}), so the built-in default trains on the "
        "processor",
        display_name(machine.platform),
        machine.platform == Platform::amd ? "ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES"));
    return std::nullopt;
  }
  if (const auto count = find_stated_count(sources, machine.platform); count && *count > 0 && *count < gpus->count)
    gpus->count = *count;
  suite::GpuDefault chosen =
      suite::choose_gpu_default(*gpus, suite::find_peer_framework(machine.platform), planner::built_in_parameters());
  return GpuSession{std::move(*gpus), std::move(chosen)};
}

std::optional<GpuSession> use_gpu_default(suite::ConfigSources& sources, const MachineFacts& machine,
                                          std::optional<Platform> platform) {
  if (suite::has_config_file(sources) || (platform && *platform != machine.platform)) return std::nullopt;
  if (machine.platform == Platform::cpu && !platform) warn_of_refused_libraries();
  auto session = choose_gpu_session(machine, sources);
  if (session) sources.machine_default = suite::MachineDefault{k_default_name, session->chosen.yaml};
  return session;
}

std::vector<std::string> describe_choice(const GpuSession& session, const suite::SuitePlan& plan,
                                         const planner::ParameterSet& parameters) {
  std::vector<std::string> sentences = session.chosen.reasons;
  sentences.push_back(suite::describe_expected(plan, session.gpus, parameters));
  return sentences;
}

void state_choice(const std::optional<GpuSession>& session, suite::SuitePlan& plan,
                  const planner::ParameterSet& parameters) {
  if (!session) return;
  const std::vector<std::string> choice = describe_choice(*session, plan, parameters);
  for (suite::PlannedRun& run : plan.runs) run.default_choice = choice;
}

suite::LoadedExperiment load_session_config(const Session& session, std::optional<Platform> platform) {
  suite::ConfigSources sources = config_sources(session);
  if (!suite::has_config_file(sources)) use_gpu_default(sources, read_machine(open_gpu_libraries()), platform);
  return suite::load_experiment(sources);
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
